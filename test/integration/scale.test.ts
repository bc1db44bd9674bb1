import type http from 'node:http';
import type { ClusterSnapshot, WorkerIdentity } from 'nestjs-cluster';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { CONTROLLED, PrimaryControl, type Refusal } from '../support/primary-control.js';
import { childrenOf } from '../support/processes.js';
import { Traffic } from '../support/traffic.js';

/** Resolves once the workers of exactly these slots serve, and nothing else is left. */
async function serving(cluster: ClusterProcess, workers: number): Promise<void> {
  await eventually(
    `${workers} workers and nothing else`,
    () => [childrenOf(cluster.pid).length, cluster.workerPids.length],
    ([children, ready]) => children === workers && ready === workers,
  );
}

interface Scaled extends Partial<Refusal> {
  readonly status: number | undefined;
  readonly by: WorkerIdentity;
  readonly snapshot: ClusterSnapshot;
}

/** Has a worker's app scale the cluster, from inside a request. */
async function scaleWithin(
  cluster: ClusterProcess,
  workers: number | string,
  agent?: http.Agent,
): Promise<Scaled> {
  const { status, body } = await request(cluster.url, `/scale/${workers}`, {
    method: 'POST',
    ...(agent && { agent }),
  });
  return { status, ...(JSON.parse(body || '{}') as Omit<Scaled, 'status'>) };
}

describe('scaling under load', () => {
  let cluster: ClusterProcess;
  let control: PrimaryControl;
  let traffic: Traffic;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({ env: { ...CONTROLLED, ...behaviour('builds#works') } });
    control = await PrimaryControl.of(cluster);
    traffic = new Traffic(cluster.url, 1);
    await traffic.serves(50);
  });

  afterAll(async () => {
    await traffic.stop();
    await stopAll();
  });

  /** No request was lost, no worker died, and the removed workers ended without a problem. */
  async function unnoticed(): Promise<void> {
    await traffic.serves(50);
    expect(traffic.lost).toEqual([]);
    expect(cluster.all('worker-died')).toEqual([]);
    for (const stopped of cluster.all('worker-stopped')) {
      expect(stopped).toMatchObject({ cause: 'scale', problem: null, abortedRequests: 0 });
    }
  }

  it('SIGTTIN adds a worker that serves, SIGTTOU takes it away', async () => {
    const before = cluster.workerPids;

    cluster.kill('SIGTTIN');

    expect(await cluster.event('scaling')).toMatchObject({
      level: 'info',
      from: 2,
      to: 3,
      reason: 'SIGTTIN',
    });
    await serving(cluster, 3);
    const added = cluster.workerPids[2]!;
    await traffic.until('an answer of the new worker', () => traffic.seen.get(0)!.has(added));
    cluster.kill('SIGTTOU');
    expect(await cluster.event('worker-stopped')).toMatchObject({ worker: 2, pid: added });
    await serving(cluster, 2);
    expect(cluster.workerPids).toEqual(before);
    await unnoticed();
  });

  it('scale() of the runtime resolves once those that are too many are gone', async () => {
    const [first] = cluster.workerPids;

    const down = await control.scale(1);

    expect(down).toMatchObject({ desired: 1, ready: 1, workers: [{ slot: 0, pid: first }] });
    expect(childrenOf(cluster.pid)).toEqual([first]);
    await unnoticed();
  });

  it('SIGTTOU never takes the last worker away', async () => {
    const before = cluster.all('scaling').length;

    cluster.kill('SIGTTOU');

    const warning = await cluster.event('warning', ({ message }) => message.includes('SIGTTOU'));
    expect(warning).toMatchObject({ level: 'warn' });
    expect(warning.message).toContain('0 workers');
    expect(cluster.all('scaling')).toHaveLength(before);
    expect(await control.snapshot()).toMatchObject({ desired: 1, ready: 1 });
    await unnoticed();
  });

  it('scale() of the runtime resolves once the new workers are ready', async () => {
    const up = await control.scale(3);

    expect(up).toMatchObject({ desired: 3, ready: 3 });
    expect(up.workers.map(({ slot, state }) => [slot, state])).toEqual([
      [0, 'ready'],
      [1, 'ready'],
      [2, 'ready'],
    ]);
    expect(await control.scale(3)).toMatchObject({ desired: 3, ready: 3 });
    await unnoticed();
  });

  it('scale() inside a request is answered also where it takes away who asked', async () => {
    const [, , asker] = cluster.workerPids;
    const agent = await agentOf(cluster.url, asker!);

    const { status, by, snapshot } = await scaleWithin(cluster, 2, agent);

    expect([status, by]).toEqual([201, { slot: 2, generation: 0, pid: asker }]);
    expect(snapshot).toMatchObject({ desired: 2, ready: 2 });
    expect(cluster.all('scaling').at(-1)!['reason']).toContain('scale()');
    await serving(cluster, 2);
    await unnoticed();
  });
});
