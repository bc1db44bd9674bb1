import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { getJson } from '../support/http-client.js';
import { listenersOf } from '../support/kernel-sockets.js';
import { killInTheMiddle, outcomes } from '../support/killed-worker.js';
import { NewConnections } from '../support/new-connections.js';
import { CONTROLLED, PrimaryControl } from '../support/primary-control.js';

const balancing = 'ports';

const urlOf = (port: number): string => `http://127.0.0.1:${port}`;

const portsOf = (pid: number): number[] => listenersOf(pid).map(({ localPort }) => localPort);

/** The worker that answers on a port. */
async function whoami(port: number): Promise<{ slot: number; pid: number; generation: number }> {
  return (await getJson(urlOf(port), '/whoami')).body;
}

/** Resolves once each worker listens only on its own port. `ports` are in the order of slots. */
async function settled(cluster: ClusterProcess, ports: readonly number[]): Promise<void> {
  await eventually(
    `a worker for each of ${ports.join(', ')}`,
    () => cluster.workerPids.map(portsOf),
    (listened) => JSON.stringify(listened) === JSON.stringify(ports.map((port) => [port])),
  );
}

describe('under clients of each port that open a new connection for each request', () => {
  let first: number;
  let ports: readonly number[];
  let cluster: ClusterProcess;
  let control: PrimaryControl;
  let load: NewConnections;

  beforeAll(async () => {
    first = await freePorts(3);
    ports = [first, first + 1, first + 2];
    cluster = await ClusterProcess.start({
      options: {
        balancing,
        port: first,
        workers: 3,
        hangTimeoutMs: 30_000,
      },
      env: { ...CONTROLLED, ...behaviour('builds#works') },
    });
    control = await PrimaryControl.of(cluster);
    load = new NewConnections(ports.map(urlOf), 2);
    await load.serves(50);
  });

  afterAll(async () => {
    const stopped = load.stop();
    await stopAll();
    await stopped;
  });

  it('the worker of slot k answers on port + k, and the primary holds all of them', async () => {
    await settled(cluster, ports);
    for (const [slot, port] of ports.entries()) {
      for (let i = 0; i < 5; i++) expect(await whoami(port)).toMatchObject({ slot });
    }
    expect(cluster.workerPids.map(portsOf)).toEqual(ports.map((port) => [port]));
    expect(portsOf(cluster.pid)).toEqual(expect.arrayContaining([...ports]));
    expect(load.lost.splice(0)).toEqual([]);
  });

  it('loses only what a killed worker had accepted: others adopt its port, and refuse nobody', async () => {
    let lost = 0;
    for (let kill = 0; kill < 4; kill++) {
      // Every second one is killed before the one before it is replaced.
      if (kill % 2 === 0) await settled(cluster, ports);
      const slot = kill % 3;
      const port = ports[slot]!;
      const victim = cluster.all('worker-ready').findLast(({ worker }) => worker === slot)!.pid!;
      const { accepted, queued } = await killInTheMiddle(victim, ports, urlOf(port));
      expect(outcomes(await Promise.all(queued))).toEqual(['ok']);
      await load.turnOver();
      const losses = load.lost.splice(0);
      expect(losses.filter(({ clientPort }) => !accepted.has(clientPort!))).toEqual([]);
      lost += losses.length;
    }
    // Else nothing was proved: some had been accepted.
    expect(lost).toBeGreaterThan(0);
    await settled(cluster, ports);
    expect(cluster.all('worker-died').map(({ cause }) => cause)).toEqual(
      Array.from({ length: 4 }, () => 'killed'),
    );
    expect(load.lost.splice(0)).toEqual([]);
  });

  it('loses nothing in a reload, on any port', async () => {
    const generation = 1;
    expect(await control.reload()).toMatchObject({ outcome: 'completed', generation });
    await settled(cluster, ports);
    for (const [slot, port] of ports.entries()) {
      expect(await whoami(port)).toMatchObject({ slot, generation });
    }
    await load.turnOver();
    expect(load.lost.splice(0)).toEqual([]);
  });
});
