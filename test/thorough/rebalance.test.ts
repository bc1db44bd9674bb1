import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ONE_ADAPTER } from '../support/adapters.js';
import { BalanceMetrics } from '../support/balance.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { describeOnce } from '../support/once.js';
import { StrictClients } from '../support/strict-clients.js';

const CLIENTS = 30;

/** Together they keep one worker busy, and leave the machine to others. */
const KEPT = { clients: CLIENTS, pauseMs: 40 };

describe(`kept connections on ${ONE_ADAPTER}`, () => {
  let cluster: ClusterProcess;
  let clients: StrictClients;
  let metrics: BalanceMetrics;

  // All of them on one worker, before there is another.
  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { ...behaviour('builds#works'), TEST_ADAPTER: ONE_ADAPTER },
    });
    clients = new StrictClients(cluster.url, KEPT);
    metrics = new BalanceMetrics(cluster.url);
    await clients.serves(2 * CLIENTS);
  });

  afterAll(async () => {
    await clients.stop();
    await stopAll();
  });

  it('go to a worker that a scale-up has brought, and nobody notices', async () => {
    expect(clients.opened).toBe(CLIENTS);

    cluster.kill('SIGTTIN');

    await metrics.even([0, 1]);
    expect(clients.faults).toEqual([]);
    expect(clients.moved).toBeGreaterThanOrEqual(CLIENTS / 4);
    await eventually(
      'the counter has what the clients saw',
      () => metrics.rebalanced(0),
      (count) => count >= CLIENTS / 4,
    );
  });

  it('go to the worker that takes the place of one that was killed', async () => {
    const before = [await metrics.rebalanced(0), await metrics.rebalanced(1)];
    const [killed] = cluster.workerPids;

    process.kill(killed!, 'SIGKILL');

    await cluster.event('worker-ready', ({ worker, pid }) => worker === 0 && pid !== killed);
    await metrics.even([0, 1]);
    // Faults are expected for clients of the killed worker, and for clients without a known worker.
    const others = clients.faults.splice(0).filter(({ pid }) => pid !== killed && pid);
    expect(others).toEqual([]);
    expect(await metrics.rebalanced(0)).toBeGreaterThanOrEqual(before[0]!);
    await eventually(
      'clients were asked to leave the survivor',
      () => metrics.rebalanced(1),
      (count) => count >= before[1]! + CLIENTS / 4,
    );
  });
});

describeOnce('a cluster with rebalance: false', () => {
  afterEach(stopAll);

  it('moves no connection, however uneven it is', async () => {
    const cluster = await ClusterProcess.start({ options: { workers: 1, rebalance: false } });
    const clients = StrictClients.forTest(cluster.url, { clients: 10, pauseMs: 50 });
    await clients.serves(20);
    cluster.kill('SIGTTIN');
    await cluster.event('worker-ready', ({ worker }) => worker === 1);

    await delay(6_000); // others have been moved by then
    await clients.serves(150);

    expect(await new BalanceMetrics(cluster.url).rebalanced()).toBe(0);
    expect([clients.moved, clients.opened, clients.faults]).toEqual([0, 10, []]);
  });
});
