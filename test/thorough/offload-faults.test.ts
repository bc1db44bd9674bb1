import http from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { NEVER_MS } from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import { getJson, request } from '../support/http-client.js';
import {
  Gates,
  offloadOptions,
  offloadReport,
  TaskCounts,
  writtenTimes,
  wrote,
} from '../support/offload.js';
import { describeOnce } from '../support/once.js';
import { RawClient } from '../support/raw-client.js';

const gates = new Gates(afterAll);

/** One worker with calls that fail. */
function start(
  offload: Parameters<typeof offloadOptions>[0],
  { options, env }: Pick<StartOptions, 'options' | 'env'> = {},
): Promise<ClusterProcess> {
  return ClusterProcess.start({
    options: { workers: 1, ...options },
    env: { ...behaviour('offload-faults'), ...gates.env, ...offloadOptions(offload), ...env },
  });
}

function counted(cluster: ClusterProcess, what: string, holds: (counts: TaskCounts) => boolean) {
  return eventually(what, () => TaskCounts.of(cluster), holds);
}

const threadOf = async (cluster: ClusterProcess): Promise<number> =>
  (await getJson(cluster.url, '/faults/where')).body.threadId;

describeOnce.each(['express', 'fastify', 'node'])('on %s, when the client goes away', (adapter) => {
  let cluster: ClusterProcess;

  beforeAll(async () => {
    cluster = await start({ threads: 1 }, { env: { TEST_ADAPTER: adapter } });
  });
  afterAll(stopAll);

  const abortedTasks = async () => (await TaskCounts.of(cluster)).of('aborted');

  it('the thread that works for it ends, and the next call gets another', async () => {
    const before = await abortedTasks();
    const thread = await threadOf(cluster);
    const name = `${adapter}-loop`;
    const leaving = http.get(`${cluster.url}/faults/loop/${name}`, { agent: false });
    leaving.on('error', () => {});
    await wrote(cluster, `begun ${name}`);

    leaving.destroy();

    expect(await threadOf(cluster)).not.toBe(thread);
    expect(await abortedTasks()).toBe(before + 1);
    expect(await offloadReport(cluster.url)).toMatchObject({ threads: 1, running: 0 });
  });
});

describe('a thread that is lost', () => {
  afterEach(stopAll);

  it('by a full heap fails its call, and neither another call nor the process', async () => {
    const env = { NODE_OPTIONS: '--max-old-space-size=96' };
    const cluster = await start({ threads: 2 }, { env });
    const name = 'beside';
    const other = getJson(cluster.url, `/faults/hold/${name}`);
    await wrote(cluster, `begun ${name}`);

    const { status, body } = await getJson(cluster.url, '/faults/out-of-memory');

    expect([status, body.message]).toEqual([500, 'the thread running Faults.outOfMemory died']);
    const died = /the thread running Faults\.outOfMemory died: .*memory limit/;
    await cluster.until(String(died), () => died.test(cluster.output));
    const next = await threadOf(cluster);
    gates.open(name);
    expect((await other).status).toBe(200);
    expect((await other).body.threadId).not.toBe(next);
    expect(cluster.all('worker-died')).toEqual([]);
  });
});

describeOnce('the drain', () => {
  afterEach(stopAll);

  it('finishes calls that run and calls that wait, with a request or without one', async () => {
    const shutdown = { drainTimeoutMs: NEVER_MS };
    const cluster = await start({ threads: 1 }, { options: { shutdown } });
    const running = request(cluster.url, '/faults/hold/drain-running');
    await wrote(cluster, 'begun drain-running');
    const waiting = request(cluster.url, '/faults/hold/drain-waiting');
    // There is one thread, so the call in the background begins last.
    await counted(cluster, 'one to wait', ({ queueSize }) => queueSize === 1);
    await request(cluster.url, '/background/drain-background');
    await counted(cluster, 'two to wait', ({ queueSize }) => queueSize === 2);

    cluster.kill('SIGTERM');
    await cluster.event('worker-draining');
    gates.open('drain-running', 'drain-waiting');

    expect([(await running).status, (await waiting).status]).toEqual([200, 200]);
    await wrote(cluster, 'begun drain-background');
    // Only the call that no request waits for is left.
    expect(cluster.all('worker-stopped')).toEqual([]);
    gates.open('drain-background');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(writtenTimes(cluster, 'background drain-background completed')).toBe(1);
  });

  it('ends at its deadline the calls that still run, also endless loops', async () => {
    const shutdown = { drainTimeoutMs: 500, killTimeoutMs: 10_000 };
    const cluster = await start({ threads: 2 }, { options: { shutdown } });
    const client = await RawClient.open(cluster.url);
    client.get('/faults/loop/drain-loop');
    await request(cluster.url, '/background/deadline-background');
    await request(cluster.url, '/background/deadline-waiting');
    await wrote(cluster, 'begun drain-loop');
    await wrote(cluster, 'begun deadline-background');

    cluster.kill('SIGTERM');

    await client.end();
    expect(client.text).toBe('');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(writtenTimes(cluster, 'background deadline-background TaskAbortedException')).toBe(1);
    expect(writtenTimes(cluster, 'background deadline-waiting TaskRejectedException')).toBe(1);
    expect(writtenTimes(cluster, 'begun deadline-waiting')).toBe(0);
    const [stopped] = cluster.all('worker-stopped');
    expect(stopped).toMatchObject({ problem: null, abortedRequests: 1 });
    expect(cluster.all('worker-died')).toEqual([]);
  });
});
