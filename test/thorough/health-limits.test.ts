import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import type { HealthBody } from '../support/health.js';
import { getJson, request } from '../support/http-client.js';
import { Gates, NEVER_MS } from '../support/offload.js';

afterEach(stopAll);

describe('a limit', () => {
  const startWith = (health: object, env: Readonly<Record<string, string>> = {}) =>
    ClusterProcess.start({
      options: { workers: 1, heartbeat: { intervalMs: 200 } },
      env: {
        // Calls wait for a thread for as long as that takes.
        TEST_MODULE_OPTIONS: JSON.stringify({
          health,
          offload: { queueTimeoutMs: NEVER_MS, niceIncrement: 0 },
        }),
        ...env,
      },
    });

  /** What is down; the cluster and the process serve on. */
  async function downs(cluster: ClusterProcess) {
    const { status, body } = await getJson<HealthBody>(cluster.url, '/health');
    expect((await request(cluster.url, '/health/live')).status).toBe(200);
    expect((await request(cluster.url, '/health/ready')).status).toBe(200);
    expect(status).toBe(Object.keys(body.error).length > 0 ? 503 : 200);
    return body.error;
  }

  it('of memory turns /health to 503, and says which', async () => {
    const limit = 16 * 1024 * 1024;
    const cluster = await startWith({ maxHeapUsedBytes: limit, maxResidentMemoryBytes: limit });

    expect(await downs(cluster)).toEqual({
      memory: {
        status: 'down',
        heapUsedBytes: expect.any(Number),
        residentMemoryBytes: expect.any(Number),
        message: expect.stringMatching(
          /^heapUsedBytes is \d+, above its limit of 16777216; residentMemoryBytes is \d+, above /,
        ),
      },
    });
  });

  it('of the delay of the event loop turns /health to 503 for as long as it is above', async () => {
    const cluster = await startWith({ maxEventLoopDelayMs: 150 }, behaviour('hang-routes'));
    let over = false;
    const blocking = (async () => {
      while (!over) await request(cluster.url, '/block/300');
    })();

    const { eventLoop } = await eventually(
      'the delay',
      () => downs(cluster),
      (error) => 'eventLoop' in error,
    );
    over = true;
    await blocking;

    expect(eventLoop).toEqual({
      status: 'down',
      eventLoopUtilization: expect.any(Number),
      eventLoopDelayP99Ms: expect.any(Number),
      message: expect.stringMatching(/^eventLoopDelayP99Ms is [\d.]+, above its limit of 150$/),
    });
    await eventually(
      'all to be well',
      () => downs(cluster),
      (error) => Object.keys(error).length === 0,
    );
  });

  it('of the queue of @CpuBound() calls turns /health to 503', async () => {
    const gates = new Gates();
    onTestFinished(() => gates.remove());
    const cluster = await startWith(
      { maxQueueSize: 1 },
      { ...behaviour('offload-faults'), ...gates.env, CLUSTER_THREADS: '1' },
    );
    const names = ['a', 'b', 'c', 'd'];
    const held = names.map((name) => request(cluster.url, `/faults/hold/${name}`));

    const { offload } = await eventually(
      'three calls that wait',
      () => downs(cluster),
      (error) => error['offload']?.['queueSize'] === 3,
    );

    expect(offload).toMatchObject({
      status: 'down',
      message: 'queueSize is 3, above its limit of 1',
    });
    gates.open(...names);
    await Promise.all(held);
    expect(await downs(cluster)).toEqual({});
  });
});
