import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../../../../test/support/behaviour.js';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { request } from '../../../../test/support/http-client.js';
import { type Operation, violationsOf } from '../support/register-history.js';

/** Eight by hand; in CI a reload of them takes longer than a test waits for one thing. */
const WORKERS = Number(process.env.HUB_WORKERS ?? 4);
const LIMIT = 100;
/** HUB_OPERATIONS=1000000 is the whole of it, a few minutes. */
const OPERATIONS = Number(process.env['HUB_OPERATIONS'] ?? 10_000);
const ENDED = 'the thread of @nestjs-cluster/shared ended';
const OPERATIONS_AT_ONCE = 250;
const preload = pathToFileURL(
  join(import.meta.dirname, '../../../../test/fixtures/preload/hub-thread.mjs'),
).href;

let cluster: ClusterProcess;
let directory: string;
let file: string;

/** All tests share one cluster: a test that breaks the hub leaves it working for the next test. */
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'hub-test-'));
  file = join(directory, 'log');
  writeFileSync(file, '');
  cluster = await ClusterProcess.start({
    options: { workers: WORKERS, control: false },
    execArgv: ['--import', preload],
    env: {
      ...behaviour('shared-state'),
      TEST_FILE: file,
      TEST_LIMIT: String(LIMIT),
      // Longer than all tests of this file take, so that all requests fall into one window.
      TEST_TTL_MS: '600000',
      TMPDIR: directory,
    },
  });
});
afterAll(stopAll);

const lines = (): string[] => readFileSync(file, 'utf8').split('\n').filter(Boolean);

async function get(path: string, agent?: http.Agent) {
  const answer = await request(cluster.url, path, agent === undefined ? {} : { agent });
  return { ...answer, json: () => JSON.parse(answer.body) as Record<string, unknown> };
}

async function sample(name: string): Promise<number> {
  const { body } = await get('/metrics');
  return body
    .split('\n')
    .filter((line) => line.startsWith(`nestjs_cluster_${name}`))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Requests that the hub did not count in time. */
async function uncounted(): Promise<number> {
  const all = await sample('hub_requests_total{request="count"');
  return all - (await sample('hub_requests_total{request="count",outcome="ok"}'));
}

const allConnected = () =>
  eventually('all workers are connected', async () => (await sample('hub_connected')) === WORKERS);

const hubDirectories = (): string[] =>
  readdirSync(directory).filter((name) => name.startsWith('nestjs-cluster-thread-'));

describe('the hub', () => {
  it('has a socket of this user alone, in a directory of this user alone', () => {
    const own = join(directory, hubDirectories()[0]!);
    const [socket, ...others] = readdirSync(own);
    expect(others).toEqual([]);
    expect(statSync(own).mode & 0o777).toBe(0o700);
    expect(statSync(join(own, socket!)).mode & 0o777).toBe(0o600);
  });

  it('lets as many requests pass as the limit says, of 64 connections, through a reload', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
    const before = await uncounted();
    const half = () => Promise.all(Array.from({ length: 1_000 }, () => get('/limited', agent)));
    const first = await half();
    cluster.child.kill('SIGHUP');
    const second = await half();
    await cluster.event('reload-ended');
    const last = await get('/limited');
    agent.destroy();
    const answers = [...first, ...second, last];
    const passed = answers.filter(({ status }) => status === 200).length;
    const local = (await uncounted()) - before;
    expect(answers.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
    // On a busy machine the hub may take over a second: each such request passes at most once.
    expect(passed).toBeGreaterThanOrEqual(LIMIT);
    expect(passed).toBeLessThanOrEqual(LIMIT + local);
    expect(await sample('hub_requests_total{request="count",outcome="ok"}')).toBeGreaterThan(1_000);
  });

  it('gives a lock to one worker at a time, also when those who hold it are killed', async () => {
    const killed = new Set<number>();
    const running = Promise.all(Array.from({ length: 40 }, () => get('/exclusive/40')));
    let isOver = false; // two workers may have had all the requests
    void running.then(() => (isOver = true));
    for (let n = 0; n < 3; n += 1) {
      const holder = (): number | undefined => {
        const [what, pid] = (lines().at(-1) ?? '').split(' ');
        return what === 'begin' && !killed.has(Number(pid)) ? Number(pid) : undefined;
      };
      await eventually('a worker holds the lock', () => isOver || holder() !== undefined);
      const pid = holder();
      if (pid === undefined) continue;
      killed.add(pid);
      process.kill(pid, 'SIGKILL');
    }
    await running;
    let holder: string | undefined;
    for (const line of lines()) {
      const [what, pid] = line.split(' ');
      if (what === 'begin') {
        expect(holder === undefined || killed.has(Number(holder)), line).toBe(true);
        holder = pid;
      } else {
        expect(pid, line).toBe(holder);
        holder = undefined;
      }
    }
    expect(killed.size).toBeGreaterThan(0);
    expect(await get('/exclusive/0').then((answer) => answer.json()['code'])).toBeUndefined();
    await cluster.until('all workers again', () => cluster.workerPids.length === WORKERS);
  });

  it(
    'returns the last value, or one that is being written, whatever asks for it',
    async () => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 32 });
      const startedAt = performance.now();
      const answers = await Promise.all(
        Array.from({ length: Math.ceil(OPERATIONS / OPERATIONS_AT_ONCE) }, () =>
          get(`/history/${OPERATIONS_AT_ONCE}`, agent),
        ),
      );
      const seconds = (performance.now() - startedAt) / 1_000;
      agent.destroy();
      const history = answers.flatMap((each) => each.json()['history'] as Operation[]);
      const unsure = history.filter((each) => each.unsure).length;
      console.log(
        `${history.length} reads and writes in ${seconds.toFixed(1)} s, ${unsure} without an answer`,
      );
      expect(violationsOf(history)).toEqual([]);
      expect(history.length).toBeGreaterThanOrEqual(OPERATIONS);
      expect(unsure).toBeLessThan(OPERATIONS / 2);
      expect(await sample('cache_hits_total')).toBeGreaterThan(50);
      expect(await sample('cache_entries')).toBeGreaterThan(0);
    },
    OPERATIONS > 100_000 ? 1_200_000 : undefined,
  );

  it('is started anew when it ends, and the lock that is held stays held', async () => {
    await allConnected();
    writeFileSync(file, '');
    const first = get('/exclusive/2500');
    await eventually('it is held', () => lines().length === 1);
    cluster.child.kill('SIGURG');
    const others = Promise.all(Array.from({ length: 5 }, () => get('/exclusive/1')));
    expect((await first).json()['code']).toBeUndefined();
    await others;
    const holders = lines().map((line) => line.split(' ')[0]);
    expect(holders).toEqual(Array.from({ length: 6 }, () => ['begin', 'end']).flat());
    await cluster.event('warning', ({ message }) => message.includes(ENDED));
  });

  it('leaves nothing when the cluster ends', async () => {
    cluster.child.kill('SIGTERM');
    expect((await cluster.exited()).code).toBe(0);
    expect(hubDirectories()).toEqual([]);
  });
});

it('a lock and a limit are refused in a thread, where they would keep out nobody', async () => {
  const thread = new Worker(
    join(import.meta.dirname, '../../../../test/fixtures/lock-in-thread.mjs'),
  );
  const [outcomes] = (await once(thread, 'message')) as [string[]];
  expect(outcomes).toEqual([
    expect.stringContaining('runExclusive("nightly") was called in a thread'),
    expect.stringContaining('run("acme") was called in a thread'),
  ]);
});
