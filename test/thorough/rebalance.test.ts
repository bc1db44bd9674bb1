import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { BalancingStrategy } from 'nestjs-cluster';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ONE_ADAPTER } from '../support/adapters.js';
import { BalanceMetrics } from '../support/balance.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { Gates } from '../support/offload.js';
import { describeOnce, IS_FIRST_RUN } from '../support/once.js';
import { CONTROLLED, PrimaryControl } from '../support/primary-control.js';
import { StrictClients } from '../support/strict-clients.js';

const CLIENTS = 30;

/** Together they keep one worker busy, and leave the machine to others. */
const KEPT = { clients: CLIENTS, pauseMs: 40 };

/** Strategies and the Nodes that have them. */
function supports(balancing: BalancingStrategy): boolean {
  if (balancing !== 'reuse-port') return true;
  const version = execFileSync(NODE, ['--version'], { encoding: 'utf8' });
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version)!.map(Number);
  return process.platform === 'linux' && (major! > 22 || (major === 22 && minor! >= 12));
}

/** A free port, and a free one behind it: below those that the system gives to clients. */
async function freePorts(): Promise<number> {
  const bind = (port: number) =>
    new Promise<net.Server | undefined>((resolve) => {
      const server = net.createServer().listen(port, '127.0.0.1', () => resolve(server));
      server.once('error', () => resolve(undefined));
    });
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const bound = [await bind(port), await bind(port + 1)];
    for (const server of bound) server?.close();
    if (bound.every((server) => server !== undefined)) return port;
  }
}

/** All clients have been served on the connections they keep. */
async function allServed(clients: StrictClients, count: number): Promise<void> {
  const goal = clients.served + count;
  await eventually(
    `${count} answers`,
    () => ({ served: clients.served, faults: clients.faults }),
    ({ served }) => served >= goal,
  );
}

/** `/health`, `/metrics` and the start line say how connections reach the workers. */
async function expectNamed(cluster: ClusterProcess, balancing: BalancingStrategy): Promise<void> {
  const page = await BalanceMetrics.of(cluster.url).page();
  expect(page.labelValues('nestjs_cluster_info', 'balancing')).toEqual([balancing]);
  expect(page.values('nestjs_cluster_info')).toEqual([1]);
  expect(await clusterReport(cluster.url)).toMatchObject({ balancing });
  const [started] = cluster.all('listening');
  expect(started).toMatchObject({ balancing });
  expect(started!.message).toContain(`balancing=${balancing}`);
}

describe(`kept connections on ${ONE_ADAPTER}`, () => {
  let cluster: ClusterProcess;
  let control: PrimaryControl;
  let clients: StrictClients;
  let metrics: BalanceMetrics;

  // All of them on one worker, before there is another.
  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { ...CONTROLLED, ...behaviour('builds#works'), TEST_ADAPTER: ONE_ADAPTER },
    });
    control = await PrimaryControl.of(cluster);
    clients = new StrictClients([cluster.url], KEPT);
    metrics = BalanceMetrics.of(cluster.url);
    await allServed(clients, 2 * CLIENTS);
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
    await expectNamed(cluster, 'shared');
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

  it('are spread again after a reload', async () => {
    expect(await control.reload()).toMatchObject({ outcome: 'completed' });

    await metrics.even([0, 1]);
    expect(clients.faults).toEqual([]);
  });

  it('leave counters that never fall, whatever became of the workers', async () => {
    const rebalanced = await metrics.rebalanced(1);
    expect(rebalanced).toBeGreaterThan(0);

    await control.scale(1);
    expect(await metrics.rebalanced(1)).toBeGreaterThanOrEqual(rebalanced);
    await control.scale(2);
    await metrics.even([0, 1]);

    expect(await metrics.rebalanced(1)).toBeGreaterThanOrEqual(rebalanced);
    expect(metrics.fallen).toEqual([]);
    expect(clients.faults).toEqual([]);
  });
});

/** The two that need no new Node are not run again on one. */
const STRATEGIES = (
  IS_FIRST_RUN ? (['round-robin', 'ports', 'reuse-port'] as const) : (['reuse-port'] as const)
).filter(supports);

describe.each(STRATEGIES)("with the strategy '%s'", (balancing) => {
  afterEach(stopAll);

  it('a worker that a scale-up has brought is filled, and the strategy is named', async () => {
    const port = balancing === 'ports' ? await freePorts() : 0;
    const cluster = await ClusterProcess.start({
      options: { workers: 1, balancing, port },
    });
    // With a port for each worker it is what stands in front that connects to one or the other.
    const bases = [cluster.url];
    const clients = StrictClients.forTest(bases, KEPT);
    const metrics = BalanceMetrics.of(cluster.url);
    await allServed(clients, 2 * CLIENTS);
    expect(clients.opened).toBe(CLIENTS);

    cluster.kill('SIGTTIN');
    await cluster.event('worker-ready', ({ worker }) => worker === 1);
    if (balancing === 'ports') bases.push(`http://127.0.0.1:${port + 1}`);

    await metrics.even([0, 1]);
    expect(clients.faults).toEqual([]);
    expect(await metrics.rebalanced()).toBeGreaterThan(0);
    await expectNamed(cluster, balancing);
  });
});

describeOnce('what is to be left alone', () => {
  /** All of it is watched over the same time. */
  const WATCHED_MS = 6_000;
  const started: Record<
    'even' | 'single' | 'off',
    { clients: StrictClients; metrics: BalanceMetrics }
  > = {} as never;
  const counted: Record<keyof typeof started, { requests: number; moved: number }> = {} as never;

  beforeAll(async () => {
    const [even, single, off] = await Promise.all([
      ClusterProcess.start(),
      ClusterProcess.start(),
      ClusterProcess.start({ options: { workers: 1, rebalance: false } }),
    ]);
    const begin = ({ url }: ClusterProcess, clients: number, pauseMs: number) => ({
      clients: new StrictClients([url], { clients, pauseMs }),
      metrics: BalanceMetrics.of(url),
    });
    started.even = begin(even, CLIENTS, 50);
    started.single = begin(single, 1, 1);
    started.off = begin(off, 10, 50);
    await allServed(started.off.clients, 20);
    off.kill('SIGTTIN');
    await off.event('worker-ready', ({ worker }) => worker === 1);
    await started.even.metrics.even([0, 1]);
    await delay(2_000); // a count may be as old as a heartbeat, and the last clients move before it

    const count = () =>
      Promise.all(
        Object.values(started).map(async ({ clients, metrics }) => ({
          requests: clients.served,
          moved: await metrics.rebalanced(),
        })),
      );
    const before = await count();
    await delay(WATCHED_MS);
    // And as long as a busy machine takes for so many requests.
    const ENOUGH = [1_500, 150, 150];
    await eventually('enough requests', () =>
      Object.values(started).every(
        ({ clients }, index) => clients.served >= before[index]!.requests + ENOUGH[index]!,
      ),
    );
    const after = await count();
    Object.keys(started).forEach((name, index) => {
      counted[name as keyof typeof started] = {
        requests: after[index]!.requests - before[index]!.requests,
        moved: after[index]!.moved - before[index]!.moved,
      };
    });
  });

  afterAll(async () => {
    await Promise.all(Object.values(started).map(({ clients }) => clients.stop()));
    await stopAll();
  });

  it('a balanced cluster: fewer than one client in a thousand requests is asked', () => {
    const { requests, moved } = counted.even;
    expect(requests).toBeGreaterThan(1_000);
    expect(moved).toBeLessThan(Math.max(requests / 1_000, 1));
    expect(started.even.clients.faults).toEqual([]);
  });

  it('a single busy connection: whoever has it has it all', () => {
    expect(counted.single.requests).toBeGreaterThan(100);
    expect(counted.single.moved).toBeLessThan(3);
    expect(started.single.clients.faults).toEqual([]);
  });

  it('a cluster with rebalance: false, however uneven it is', async () => {
    const { clients, metrics } = started.off;
    expect(counted.off.requests).toBeGreaterThan(100);
    expect([counted.off.moved, clients.moved, clients.opened]).toEqual([0, 0, 10]);
    // The other worker may have answered requests for /metrics.
    expect(await metrics.requests(1)).toBeLessThan((await metrics.requests(0)) / 10);
    expect(clients.faults).toEqual([]);
  });
});

describeOnce('a worker that is blocked', () => {
  afterEach(stopAll);

  // balance.test.ts tests that a blocked worker is not asked to give connections away.
  it('keeps the others from nothing, and goes on afterwards', async () => {
    const gates = Gates.forTest();
    const cluster = await ClusterProcess.start({
      options: { workers: 3, hangTimeoutMs: 60_000 },
      env: { ...behaviour('crashes#spin'), ...gates.env },
    });
    const clients = StrictClients.forTest([cluster.url], KEPT);
    const metrics = BalanceMetrics.of(cluster.url);
    await metrics.even([0, 1, 2]);
    const [blocked, other, emptied] = cluster.workerPids;
    const agent = await agentOf(cluster.url, blocked!);
    const before = await metrics.rebalanced(1);

    const spun = request(cluster.url, '/spin/blocked', { agent, timeoutMs: 60_000 });
    await cluster.until('a worker that spins', () => cluster.output.includes('spinning\n'));
    const two = clients.at(emptied!) + clients.at(other!);
    clients.withdrawFrom(emptied!);

    await eventually(
      'worker 1 gives to worker 2',
      () => metrics.rebalanced(1),
      (count) => count > before,
    );
    clients.comeBack();
    await eventually('those are back', () => clients.at(emptied!) + clients.at(other!) >= two - 2);
    // All that while it has not answered.
    gates.open('blocked');
    expect((await spun).outcome).toBe('ok');
    await metrics.even([0, 1, 2]);
    expect(clients.faults).toEqual([]);
    expect(cluster.all('worker-died')).toEqual([]);
  });
});
