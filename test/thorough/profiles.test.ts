import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { eventually } from '../support/eventually.js';
import { hang } from '../support/hang.js';
import { request } from '../support/http-client.js';
import { ask, hottestIn } from '../support/profiles.js';
import { RawClient } from '../support/raw-client.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { describeWith } from '../support/system-packages.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const FUNCTIONS = { loop: 'loopForEver', regexp: 'matchCatastrophically' } as const;

/** Without heartbeats no worker is killed because it hangs. */
async function start(workers: number, hangTimeoutMs: number | false = false) {
  const socket = join(temporaryDirectory(), 'control.sock');
  const temporary = temporaryDirectory();
  const cluster = await ClusterProcess.start({
    options: { workers, hangTimeoutMs, control: { path: socket } },
    env: { ...behaviour('hang-routes'), TMPDIR: temporary },
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

const codeOf = ({ body }: { readonly body: string }) =>
  (JSON.parse(body) as { error: { code: string } }).error.code;

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
    const { status, body, tookMs } = await profile;
    expect([status, hottestIn(body)]).toEqual([200, FUNCTIONS[kind]]);
    expect(tookMs).toBeGreaterThanOrEqual(3_000);
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

it('profiles a worker once at a time, and not for a client that has left', async () => {
  const { cluster, socket, temporary, block } = await start(2);
  const { slot, pid } = await block('loop');
  const path = `/v1/workers/${slot}/cpu-profile`;

  const left = new AbortController();
  const first = ask(socket, 'POST', `${path}?seconds=60`, left.signal);
  const refused = await eventually(
    'a refusal of the second',
    () => ask(socket, 'POST', `${path}?seconds=1`),
    ({ status }) => status !== 200,
  );
  expect([refused.status, codeOf(refused)]).toEqual([409, 'BUSY']);
  left.abort();
  await expect(first).rejects.toThrow('aborted');
  await eventually(
    'a profile after that',
    () => ask(socket, 'POST', `${path}?seconds=1`),
    ({ status }) => status === 200,
  );

  // It has to drain first.
  const snapshot = await ask(socket, 'POST', `/v1/workers/${slot}/heap-snapshot`);
  expect([snapshot.status, codeOf(snapshot)]).toEqual([409, 'BLOCKED']);
  for (const seconds of ['0', '61', '1.5', 'x']) {
    expect((await ask(socket, 'POST', `${path}?seconds=${seconds}`)).status).toBe(400);
  }

  const directory = temporaryDirectory();
  // The primary makes a socket for it: nothing that is asked here competes with the command.
  const watcher = watch(temporary);
  onTestFinished(() => watcher.close());
  const asked = once(watcher, 'change');
  const ended = command(directory, socket, 'cpu-profile', String(slot), '--seconds', '30');
  await asked;
  process.kill(pid, 'SIGKILL');
  expect(await ended).toMatchObject({
    code: 1,
    stderr: 'error: the worker ended before it was complete\n',
  });
  expect(readdirSync(directory)).toEqual([]);
  expect(cluster.all('warning')).toEqual([]);
});

it('says in time that a worker is stopped', async () => {
  const { cluster, socket } = await start(1);
  process.kill(cluster.workerPids[0]!, 'SIGSTOP');

  const answer = await ask(socket, 'GET', '/v1/workers/0/stack');
  expect(answer.tookMs).toBeLessThan(1_500);
  const { blockedForMs, frames, problem } = JSON.parse(answer.body) as Stack;
  expect([blockedForMs, frames]).toEqual([null, []]);
  expect(problem).toContain('the process is stopped');
  const profile = await ask(socket, 'POST', '/v1/workers/0/heap-profile?seconds=1');
  expect([profile.status, codeOf(profile)]).toEqual([504, 'SILENT']);
});

it('takes a snapshot of the heap of a worker that another has replaced', async () => {
  const { cluster, socket } = await start(1);
  const directory = temporaryDirectory();
  const waiting = request(cluster.url, '/wait/500');

  const { code, stdout } = await command(directory, socket, 'heap-snapshot', '0', '--json');

  expect(code).toBe(0);
  const { file, bytes } = JSON.parse(stdout) as { file: string; bytes: number };
  const path = join(directory, file);
  expect(file).toMatch(/^worker-0-.*\.heapsnapshot$/);
  const stats = statSync(path);
  expect([stats.mode & 0o777, stats.size]).toEqual([0o600, bytes]);
  const { nodes } = JSON.parse(readFileSync(path, 'utf8')) as { nodes: unknown[] };
  expect(nodes.length).toBeGreaterThan(10_000);
  // Without a gap, and nobody was cut off.
  expect(cluster.all('worker-draining')).toMatchObject([{ cause: 'restart' }]);
  const order = cluster.lines.map(({ event }) => event);
  expect(order.lastIndexOf('worker-ready')).toBeLessThan(order.indexOf('worker-draining'));
  expect((await waiting).outcome).toBe('ok');
  expect(await cluster.event('worker-stopped')).toMatchObject({ problem: null });
});

describeWith(['unshare', 'mount'], 'a profile for which there is no room', () => {
  it('leaves no half file, overwrites none, and says why', async () => {
    const { socket } = await start(1);
    const directory = temporaryDirectory();
    const env = plainEnvironment();
    const script = 'mount -t tmpfs -o size=4k tmpfs . && cd "$PWD"; "$@"; code=$?; ls; exit $code';
    const on = (...args: string[]) =>
      runCommand('unshare', ['-m', 'sh', '-c', script, 'sh', NODE, MAIN, ...args, '-c', socket], {
        cwd: directory,
        env,
      });

    const full = await on('heap-snapshot', '0', '--output', 'x.heapsnapshot');
    expect(full).toMatchObject({ code: 1, stdout: '' });
    expect(full.stderr).toMatch(/^error: cannot write x\.heapsnapshot: ENOSPC.*nothing is left/);

    writeFileSync(join(directory, 'mine.cpuprofile'), 'mine');
    const taken = await command(directory, socket, 'cpu-profile', '0', '-o', 'mine.cpuprofile');
    expect(taken).toMatchObject({ code: 1, stdout: '' });
    expect(taken.stderr).toContain('it exists already');
    expect(readFileSync(join(directory, 'mine.cpuprofile'), 'utf8')).toBe('mine');
  });
});
