import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type LogLine, NODE, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { eventually } from '../support/eventually.js';
import { hang } from '../support/hang.js';
import { type Answer, request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { RawClient } from '../support/raw-client.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Asks the control socket at `socketPath`. */
function ask(socketPath: string, method: 'GET' | 'POST', path: string): Promise<Answer> {
  const headers = { Host: 'localhost', 'Content-Type': 'application/json' };
  return request(`unix:${socketPath}`, path, { method, headers });
}

interface CpuProfile {
  readonly nodes: readonly { id: number; callFrame: { functionName: string } }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The function of a `.cpuprofile` that took most of the time by itself. */
function hottestIn(json: string): string {
  const { nodes, samples, timeDeltas } = JSON.parse(json) as CpuProfile;
  const names = new Map(nodes.map(({ id, callFrame }) => [id, callFrame.functionName]));
  const times = new Map<string, number>();
  for (const [index, sample] of samples.entries()) {
    const name = names.get(sample)!;
    times.set(name, (times.get(name) ?? 0) + timeDeltas[index]!);
  }
  return [...times].toSorted(([, a], [, b]) => b - a)[0]![0];
}

afterEach(stopAll);

const FUNCTIONS = { loop: 'loopForEver', regexp: 'matchCatastrophically' } as const;

/** Without heartbeats no worker is killed because it hangs. */
async function start(workers: number, hangTimeoutMs: number | false = false) {
  const socket = join(temporaryDirectory(), 'control.sock');
  const temporary = temporaryDirectory();
  const cluster = await ClusterProcess.start({
    options: { workers, hangTimeoutMs, control: { path: socket } },
    env: { ...behaviour('crashes#hangs'), TMPDIR: temporary },
  });
  const slotOf = (pid: number) =>
    cluster.all('worker-ready').find((line) => line.pid === pid)!.worker!;
  return {
    cluster,
    socket,
    temporary,
    /** Blocks a worker, and says which. */
    block: async (kind: keyof typeof FUNCTIONS | 'native') => {
      const pid = await hang(cluster, await RawClient.open(cluster.url), kind);
      const slot = slotOf(pid);
      const blocked = async () => (await stack(socket, slot)).blockedForMs;
      await eventually('a watchdog that sees the block', blocked, (ms) => ms !== null);
      return { slot, pid };
    },
  };
}

interface Stack {
  readonly blockedForMs: number | null;
  readonly frames: readonly string[];
  readonly requests: readonly { readonly path: string }[];
  readonly problem: string | null;
}

async function stack(socket: string, slot: number): Promise<Stack> {
  return JSON.parse((await ask(socket, 'GET', `/v1/workers/${slot}/stack`)).body) as Stack;
}

/** Runs a command in a directory of its own. */
function command(cwd: string, socket: string, ...args: string[]) {
  const env = plainEnvironment();
  return runCommand(NODE, [MAIN, ...args, '--cluster', socket], { cwd, env });
}

it('shows what blocks a worker and profiles it, while the others serve', async () => {
  const { cluster, socket, block } = await start(3);

  for (const kind of ['loop', 'regexp'] as const) {
    const { slot, pid } = await block(kind);

    const answer = await ask(socket, 'GET', `/v1/workers/${slot}/stack`);
    expect(answer.tookMs).toBeLessThan(1_000);
    const { frames, ...said } = JSON.parse(answer.body) as Stack;
    expect(said).toMatchObject({ slot, pid, requests: [{ path: `/hang/${kind}` }], problem: null });
    expect(frames.some((frame) => frame.startsWith(FUNCTIONS[kind]))).toBe(true);

    const profile = ask(socket, 'POST', `/v1/workers/${slot}/cpu-profile?seconds=3`);
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
    const { body, tookMs } = await profile;
    const { file } = JSON.parse(body) as { readonly file: string };
    expect(hottestIn(readFileSync(file, 'utf8'))).toBe(FUNCTIONS[kind]);
    expect([file, join(file, '..')].map((path) => statSync(path).mode & 0o777)).toEqual([
      0o600, 0o700,
    ]);
    expect(tookMs).toBeGreaterThanOrEqual(3_000);
  }
  const heap = await command(temporaryDirectory(), socket, 'heap-profile', '0', '-s', '1');
  expect(heap.stdout).toMatch(/worker=0: \S+\.heapprofile; open it/);
});

it('writes a heap profile of each worker above the soft memory limit, whose first lines name the leak', async () => {
  const temporary = temporaryDirectory();
  const cluster = await ClusterProcess.start({
    options: { workers: 3, memory: { softLimitBytes: 300e6, profile: true } },
    env: { ...behaviour('memory-routes'), TMPDIR: temporary },
  });
  const pids = cluster.workerPids;
  const causes = ['cacheRows', 'addListeners', 'keepBuffers'];
  const written = causes.map(async (cause, index) => {
    const pid = pids[index]!;
    const agent = await agentOf(cluster.url, pid);
    const isOfIt = (line: LogLine) => line.pid === pid && line.message.includes('heap profile');
    for (let mb = 0; mb < 400 && !cluster.all('warning').some(isOfIt); mb += 10) {
      if (cluster.all('worker-draining').some((line) => line.pid === pid)) break;
      await request(cluster.url, `/leak-by/${cause}`, { agent });
      await delay(50);
    }
    return (await cluster.event('warning', isOfIt)).message;
  });

  for (const [index, message] of (await Promise.all(written)).entries()) {
    const [, top, file] = /and holds (.*); heap profile: (\S+\.heapprofile)$/.exec(message)!;
    expect(top).toContain(` MB in ${causes[index]} (file:///`);
    expect(top!.split(' MB in ').length).toBeLessThanOrEqual(6);
    expect(statSync(file!).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file!, 'utf8'))).toHaveProperty('head.selfSize');
  }
});

it('says that native code blocks a worker, which is killed for that', async () => {
  const { cluster, socket, block } = await start(1, 8_000);
  const { slot, pid } = await block('native');

  const { requests, frames, problem } = await stack(socket, slot);
  expect([requests, frames, problem]).toEqual([[], [], expect.stringContaining('native code')]);
  const { stdout } = await command(temporaryDirectory(), socket, 'stack', String(slot));
  expect(stdout).toMatch(/native code\n$/);

  const died = await cluster.event('worker-died');
  expect(died).toMatchObject({ pid, cause: 'hang' });
  expect(died.message).toMatch(/; no stack$/);
});
