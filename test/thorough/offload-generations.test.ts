import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { freePorts } from '../support/free-ports.js';
import { getJson, request } from '../support/http-client.js';
import { Gates, TaskCounts, writtenTimes, wrote } from '../support/offload.js';

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

/** Writes the file of the class. A thread runs `inThread` when it imports the file. */
function deploy(inThread: string): void {
  const url = (name: string) => JSON.stringify(import.meta.resolve(name));
  writeFileSync(
    path,
    `import { Controller, Get } from ${url('@nestjs/common')};
import { CpuBound } from ${url('nestjs-cluster')};
import { existsSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread } from 'node:worker_threads';

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
CpuBound()(Tasks.prototype, 'works', descriptor);
Get('works')(Tasks.prototype, 'works', descriptor);
Object.defineProperty(Tasks.prototype, 'works', descriptor);
`,
  );
}

/** Starts two workers, of which one asks a thread that waits at a gate. */
async function start(): Promise<{ cluster: ClusterProcess; url: string }> {
  deploy(`while (!existsSync(process.env.TEST_GATES + '/start')) await delay(5);`);
  const port = await freePorts(1);
  const cluster = new ClusterProcess({
    options: { workers: 2, port },
    env: { ...behaviour('offload-deployed'), ...gates.env, TEST_TASKS: path },
  });
  await wrote(cluster, 'imported');
  await cluster.until('both to be ready', () => cluster.all('worker-ready').length === 2);
  return { cluster, url: `http://127.0.0.1:${port}` };
}

describe('what only a thread can tell', () => {
  it('is checked in one ready worker of each generation, and a start and a reload wait for it', async () => {
    const { cluster, url } = await start();
    const { status, body } = await getJson(url, '/health');
    expect([status, body.details.cluster.ready]).toEqual([200, 2]);
    expect(cluster.all('listening')).toEqual([]);

    gates.open('start');

    await cluster.event('listening', () => true);
    expect(writtenTimes(cluster, 'imported')).toBe(1);
    expect((await TaskCounts.of(cluster)).threads).toBe(0);

    cluster.kill('SIGHUP');

    const completed = await cluster.event('reload-ended', () => true);
    expect(completed).toMatchObject({ outcome: 'completed', generation: 1 });
    expect(writtenTimes(cluster, 'imported')).toBe(2);
    const { body: answer } = await request(url, '/deployed/works', { timeoutMs: 30_000 });
    expect(answer).toBe('works');

    // A reload to a bad release fails before an old worker drains.
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
    expect(reason).toMatch(
      /ClusterConfigurationError: @CpuBound\(\) cannot work here: a thread cannot import \S+tasks\.mjs, .*Error: not in threads/,
    );
    await cluster.until('the new one to go', () => cluster.workerPids.length === 2);
    expect(cluster.workerPids).toEqual(before);
    expect(cluster.all('worker-draining').map(({ gen }) => gen)).toEqual([0, 0, 2]);
    expect((await request(url, '/hello')).status).toBe(200);
  }, 120_000);

  it('is checked in another worker if the first one dies', async () => {
    const { cluster } = await start();

    process.kill(cluster.all('worker-ready')[0]!.pid!, 'SIGKILL');

    await cluster.until('another', () => writtenTimes(cluster, 'imported') === 2);
    gates.open('start');
    await cluster.event('listening', () => true);
  });
});
