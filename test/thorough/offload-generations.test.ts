import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { request } from '../support/http-client.js';
import { Gates, offloadOptions, TaskCounts, writtenTimes, wrote } from '../support/offload.js';

let path: string;
let gates: Gates;

beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'nestjs-cluster-')), 'tasks.mjs');
  gates = new Gates();
});
afterEach(async () => {
  await stopAll();
  rmSync(dirname(path), { recursive: true, force: true });
  gates.remove();
});

/** Writes the file of the class; a thread does `inThread` when it imports it. */
function deploy(inThread: string): void {
  const url = (name: string) => JSON.stringify(import.meta.resolve(name));
  writeFileSync(
    path,
    `import { Controller, Get } from ${url('@nestjs/common')};
import { CpuBound } from ${url('nestjs-cluster')};
import { existsSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread } from 'node:worker_threads';

const passes = async (name) => {
  while (!existsSync(process.env.TEST_GATES + '/' + name)) await delay(5);
};
if (!isMainThread) {
  writeSync(1, 'imported\\n');
  ${inThread}
}
export class Tasks {
  works() {
    return 'works';
  }
}
Controller('deployed')(Tasks);
const descriptor = Object.getOwnPropertyDescriptor(Tasks.prototype, 'works');
const decorated = CpuBound()(Tasks.prototype, 'works', descriptor) ?? descriptor;
Get('works')(Tasks.prototype, 'works', decorated);
Object.defineProperty(Tasks.prototype, 'works', decorated);
`,
  );
}

const PROGRAM = (options: Record<string, unknown>) => ({
  options: { workers: 2, ...options },
  env: {
    ...behaviour('offload-deployed'),
    ...gates.env,
    ...offloadOptions({}),
    TEST_TASKS: path,
  },
});

describe('what only a thread can tell', () => {
  it('is looked at in one worker of each generation, once that is ready; a start and a reload wait for it', async () => {
    deploy("await passes('start');");
    const cluster = new ClusterProcess(PROGRAM({}));
    await wrote(cluster, 'imported');
    // It keeps no worker from being ready.
    await cluster.until('both to be ready', () => cluster.all('worker-ready').length === 2);
    expect(cluster.all('listening')).toEqual([]);

    gates.open('start');

    await cluster.event('listening', () => true);
    expect(writtenTimes(cluster, 'imported')).toBe(1);
    expect((await TaskCounts.of(cluster)).threads).toBe(0);

    cluster.kill('SIGHUP');

    const completed = await cluster.event('reload-ended', () => true);
    expect(completed).toMatchObject({ outcome: 'completed', generation: 1 });
    expect(writtenTimes(cluster, 'imported')).toBe(2);
    expect((await request(cluster.url, '/deployed/works', { timeoutMs: 30_000 })).body).toBe(
      'works',
    );

    // With a bad new release the reload fails before an old worker drains. The old workers go on.
    await cluster.until('the old ones to go', () => cluster.workerPids.length === 2);
    const before = cluster.workerPids;
    deploy("throw new Error('not in threads');");

    cluster.kill('SIGHUP');

    const { outcome, reason } = await cluster.event(
      'reload-ended',
      ({ generation }) => generation === 2,
      40_000,
    );
    expect(outcome).toBe('aborted');
    expect(reason).toContain('ClusterConfigurationError: @CpuBound() cannot work here: ');
    expect(reason).toMatch(/a thread cannot import \S+tasks\.mjs, .*Error: not in threads/);
    await cluster.until('the new one to go', () => cluster.workerPids.length === 2);
    expect(cluster.workerPids).toEqual(before);
    const drained = cluster.all('worker-draining').map(({ gen }) => gen);
    expect(drained).toEqual([0, 0, 2]);
    expect((await request(cluster.url, '/hello')).status).toBe(200);
  }, 120_000);

  it('has another worker asked where the first one is gone', async () => {
    deploy("await passes('start');");
    const cluster = new ClusterProcess(PROGRAM({}));
    await cluster.until('both to be ready', () => cluster.all('worker-ready').length === 2);
    await wrote(cluster, 'imported');

    process.kill(cluster.all('worker-ready')[0]!.pid!, 'SIGKILL');

    await cluster.until('another', () => writtenTimes(cluster, 'imported') === 2);
    gates.open('start');
    await cluster.event('listening', () => true);
  });
});
