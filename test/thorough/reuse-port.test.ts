import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HAS_REUSE_PORT, NODE_VERSION } from '../support/adapters.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { began } from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import { HeldBoots } from '../support/held-boots.js';
import { request } from '../support/http-client.js';
import { keepAliveAgent } from '../support/keep-alive-agent.js';
import { type KernelSocket, listenersOf } from '../support/kernel-sockets.js';
import { freeze, isFrozen, killInTheMiddle, outcomes, queueAt } from '../support/killed-worker.js';
import { NewConnections } from '../support/new-connections.js';
import { Gates } from '../support/offload.js';
import { CONTROLLED, PrimaryControl } from '../support/primary-control.js';
import { ascending } from '../support/replacements.js';

const balancing = 'reuse-port';

const inodes = (listeners: readonly KernelSocket[]): number[] =>
  listeners.map(({ inode }) => inode);

/** Resolves once every slot has its worker, and each listens on its own socket and no other. */
async function settled(cluster: ClusterProcess, workers: number): Promise<void> {
  await eventually(
    `${workers} workers with a socket each`,
    () => cluster.workerPids.map((pid) => inodes(listenersOf(pid))),
    (sockets) =>
      sockets.length === workers &&
      sockets.every(({ length }) => length === 1) &&
      new Set(sockets.flat()).size === workers,
  );
}

if (!HAS_REUSE_PORT) {
  it("balancing 'reuse-port' is refused with the reason", async () => {
    const cluster = new ClusterProcess({ options: { balancing } });
    expect(await cluster.exited()).toEqual({ code: 78, signal: null });
    expect(cluster.output).toContain(
      `needs Linux and Node 22.12 or later, but this is Node ${NODE_VERSION} on ${process.platform}`,
    );
  });
}

if (HAS_REUSE_PORT) {
  describe('under clients that open a new connection for each request', () => {
    const WORKERS = 3;
    let cluster: ClusterProcess;
    let control: PrimaryControl;
    let port: number;
    let load: NewConnections;
    let sockets: readonly number[];

    beforeAll(async () => {
      cluster = await ClusterProcess.start({
        options: {
          balancing,
          workers: WORKERS,
          hangTimeoutMs: 30_000,
        },
        env: CONTROLLED,
      });
      control = await PrimaryControl.of(cluster);
      port = Number(new URL(cluster.url).port);
      sockets = inodes(listenersOf(cluster.pid).filter(({ localPort }) => localPort === port));
      load = new NewConnections([cluster.url]);
      await load.serves(50);
    });

    afterAll(async () => {
      const stopped = load.stop();
      await stopAll();
      await stopped;
    });

    /** Resolves once each worker there is has answered again. */
    async function allServe(): Promise<void> {
      load.answeredBy.clear();
      await eventually(
        'answers of all workers',
        () => cluster.workerPids.filter((pid) => !load.answeredBy.has(pid)),
        ({ length }) => length === 0,
      );
    }

    it('each worker listens on one socket of that port, and the primary holds them all', async () => {
      await settled(cluster, WORKERS);

      expect(sockets).toHaveLength(WORKERS);
      const held = cluster.workerPids.flatMap((pid) => listenersOf(pid));
      expect(held.map(({ localPort }) => localPort)).toEqual([port, port, port]);
      expect(inodes(held).toSorted(ascending)).toEqual(sockets.toSorted(ascending));
      const listening = cluster.all('listening')[0]!;
      expect(listening).toMatchObject({ balancing, ports: [] });
      expect(listening.message).toContain('balancing=reuse-port');
    });

    it('loses only what a killed worker had accepted, again and again, also where two are down', async () => {
      let lost = 0;
      for (let round = 0; round < 2; round++) {
        await settled(cluster, WORKERS);
        const victims = [round, (round + 1) % WORKERS].map((slot) => cluster.workerPids[slot]!);
        for (const pid of victims) {
          const { accepted, queued } = await killInTheMiddle(pid, [port], cluster.url);
          expect(outcomes(await Promise.all(queued))).toEqual(['ok']);
          await load.turnOver();
          const losses = load.lost.splice(0);
          expect(losses.filter(({ clientPort }) => !accepted.has(clientPort!))).toEqual([]);
          lost += losses.length;
        }
      }
      // Else nothing was proved: some had been accepted each time.
      expect(lost).toBeGreaterThan(0);
      await settled(cluster, WORKERS);
      expect(cluster.all('worker-died').map(({ cause }) => cause)).toEqual(
        Array.from({ length: 4 }, () => 'killed'),
      );
      await allServe();
      expect(load.lost.splice(0)).toEqual([]);
    });

    it('loses nothing in reloads, and keeps its sockets', async () => {
      for (let generation = 1; generation <= 2; generation++) {
        expect(await control.reload()).toMatchObject({ outcome: 'completed', generation });
        await settled(cluster, WORKERS);
        await allServe();
      }

      expect(load.lost.splice(0)).toEqual([]);
      expect(
        cluster.workerPids.flatMap((pid) => inodes(listenersOf(pid))).toSorted(ascending),
      ).toEqual(sockets.toSorted(ascending));
    });

    it('loses nothing when scaled from 3 to 1 and up again; the one serves what comes to all sockets', async () => {
      const [survivor] = cluster.workerPids as [number];

      expect(await control.scale(1)).toMatchObject({ desired: 1, ready: 1 });

      await eventually(
        'one that listens on all sockets',
        () => inodes(listenersOf(survivor)),
        ({ length }) => length === WORKERS,
      );
      expect(inodes(listenersOf(survivor)).toSorted(ascending)).toEqual(
        sockets.toSorted(ascending),
      );
      await load.turnOver();
      load.answeredBy.clear();
      // Two of three go to a socket that is not its own.
      await load.serves(200);
      expect([...load.answeredBy.keys()]).toEqual([survivor]);
      expect(load.lost.splice(0)).toEqual([]);

      expect(await control.scale(WORKERS)).toMatchObject({ desired: WORKERS, ready: WORKERS });

      await settled(cluster, WORKERS);
      await allServe();
      expect(load.lost.splice(0)).toEqual([]);
      expect(inodes(listenersOf(cluster.pid).filter((each) => each.localPort === port))).toEqual(
        sockets,
      );
    });

    it('answers what comes to the socket of a worker that stands still, and gives it back', async () => {
      const pids = cluster.workerPids;
      const still = pids[1]!;
      const others = [pids[0]!, pids[2]!];

      await freeze(still);
      const answers = await Promise.all(await queueAt(still, cluster.url));

      expect(outcomes(answers)).toEqual(['ok']);
      expect(isFrozen(still)).toBe(true);
      await eventually('others that have adopted its socket', () =>
        others.every((pid) => listenersOf(pid).length === 2),
      );
      expect(answers.map(({ body }) => body).join()).not.toContain(`"pid":${still}`);

      process.kill(still, 'SIGCONT');

      await settled(cluster, WORKERS);
      await allServe();
      expect(cluster.workerPids).toEqual(pids);
      // The connections that the worker had accepted have waited for it.
      await load.turnOver();
      expect(load.lost.splice(0)).toEqual([]);
    });

    it('refuses a second cluster on its port, which SO_REUSEPORT alone would let in', async () => {
      const second = new ClusterProcess({ options: { balancing, port } });

      expect(await second.exited()).toEqual({ code: 69, signal: null });

      const [failed] = second.all('failed');
      expect(failed).toMatchObject({ exitCode: 69 });
      expect(failed!.message).toContain('EADDRINUSE');
      expect(failed!.message).toContain(`127.0.0.1:${port}`);
      await load.serves(50);
      expect(load.lost.splice(0)).toEqual([]);
    });
  });

  describe('the sockets of slots without a worker', () => {
    afterEach(stopAll);

    /** A cluster of two whose worker 1 is dead and stays that; worker 0 has adopted its socket. */
    async function bereaved(gates: Gates): Promise<ClusterProcess> {
      const boots = new HeldBoots();
      const cluster = await ClusterProcess.start({
        options: { balancing },
        execArgv: boots.execArgv,
        env: { ...behaviour('streams#announced'), ...gates.env, ...boots.env },
      });
      boots.begin();
      process.kill(cluster.workerPids[1]!, 'SIGKILL');
      await cluster.event('worker-died');
      await eventually('an adopted socket', () =>
        cluster.workerPids.every((pid) => listenersOf(pid).length === 2),
      );
      return cluster;
    }

    it('are closed in a drain as well: it answers what it has begun and refuses the rest', async () => {
      const gates = new Gates();
      const cluster = await bereaved(gates);
      const [pid] = cluster.workerPids as [number];
      let answered = false;
      const slow = request(cluster.url, '/gate/slow', {
        agent: keepAliveAgent(),
      }).finally(() => (answered = true));
      await began(cluster, '/gate/slow');

      cluster.kill('SIGTERM');

      await eventually('nobody who listens', () => listenersOf(pid).length === 0);
      await eventually('a primary that holds none', () => listenersOf(cluster.pid).length === 0);
      const late = await Promise.all(
        Array.from({ length: 20 }, () => request(cluster.url, '/hello')),
      );
      expect(outcomes(late)).toEqual(['refused']);
      expect(answered).toBe(false);
      gates.open('slow');
      expect(await slow).toMatchObject({ outcome: 'ok' });
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
      // By then, the worker that was killed may have another in its place.
      const stopped = cluster.all('worker-stopped').filter((line) => line.pid === pid);
      expect(stopped).toMatchObject([{ cause: 'shutdown', problem: null, abortedRequests: 0 }]);
    });
  });
}
