import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { began } from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import { freePorts, holdPort } from '../support/free-ports.js';
import { getJson, request } from '../support/http-client.js';
import { keepAliveAgent } from '../support/keep-alive-agent.js';
import { acceptedBy, listenersOf } from '../support/kernel-sockets.js';
import { freeze, killInTheMiddle } from '../support/killed-worker.js';
import { NewConnections } from '../support/new-connections.js';
import { Gates } from '../support/offload.js';
import { describeOnce } from '../support/once.js';
import { CONTROLLED, PrimaryControl } from '../support/primary-control.js';
import { openDescriptorsOf } from '../support/processes.js';
import { RawClient } from '../support/raw-client.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { Traffic } from '../support/traffic.js';

const balancing = 'round-robin';

afterEach(stopAll);

const ascending = (a: number, b: number): number => a - b;

const portOf = ({ url }: ClusterProcess): number => Number(new URL(url).port);

/** Opens `count` connections, one after the other. Gives the pid that answers on each of them. */
async function answeredBy({ url }: ClusterProcess, count: number): Promise<number[]> {
  const pids: number[] = [];
  for (let i = 0; i < count; i++) {
    pids.push((await getJson<{ pid: number }>(url, '/whoami')).body.pid);
  }
  return pids;
}

/** Resolves once there are two workers, none of which is `before`. */
function replaced(cluster: ClusterProcess, ...before: number[]): Promise<unknown> {
  return cluster.until(
    'replacements',
    () =>
      cluster.workerPids.length === 2 && !cluster.workerPids.some((pid) => before.includes(pid)),
  );
}

describe('connections', () => {
  it('go to the workers in turn: 40 of them are 20 for each of two', async () => {
    const cluster = await ClusterProcess.start({ options: { balancing } });

    const pids = await answeredBy(cluster, 40);

    const [first, second] = pids as [number, number];
    expect([first, second].toSorted(ascending)).toEqual(cluster.workerPids.toSorted(ascending));
    expect(pids).toEqual(pids.map((_, index) => (index % 2 === 0 ? first : second)));
    expect(cluster.all('listening')).toMatchObject([{ balancing, ports: [] }]);
    // It is the primary that accepts.
    expect(cluster.workerPids.flatMap((pid) => listenersOf(pid))).toEqual([]);
    expect(listenersOf(cluster.pid)).toMatchObject([{ localPort: portOf(cluster) }]);
  });

  it(
    'that a killed worker was sent and had not taken go to another, each time, and leave no descriptor',
    { timeout: 120_000 },
    async () => {
      const cluster = await ClusterProcess.start({
        options: { balancing, hangTimeoutMs: 60_000 },
      });
      const port = portOf(cluster);
      const before = openDescriptorsOf(cluster.pid);
      for (let repetition = 0; repetition < 4; repetition++) {
        const victim = cluster.workerPids[repetition % 2]!;
        const other = cluster.workerPids.find((pid) => pid !== victim)!;
        await freeze(victim);
        const clients = [await RawClient.open(cluster.url), await RawClient.open(cluster.url)];
        for (const client of clients) client.get('/whoami');
        // One each: the other worker answers its own, and the primary still has what it sent.
        await eventually('a connection that is sent and not taken', () => {
          return (
            clients.filter(({ text }) => text !== '').length === 1 &&
            acceptedBy(cluster.pid, [port]).size === 1
          );
        });
        expect(acceptedBy(victim, [port])).toEqual(new Set());

        process.kill(victim, 'SIGKILL');

        const answer = new RegExp(`200 OK[^]*"pid":${other}\\b`);
        await Promise.all(clients.map((client) => client.until(answer)));
        for (const client of clients) client.destroy();
        await replaced(cluster, victim);
        await eventually(
          `as many descriptors as before: ${before}`,
          () => openDescriptorsOf(cluster.pid),
          (now) => now <= before, // one of the start may have been closed since
        );
      }
      expect(cluster.all('warning')).toEqual([]);
      // Nobody dead is given anything.
      const pids = await answeredBy(cluster, 10);
      expect(new Set(pids)).toEqual(new Set(cluster.workerPids));
    },
  );

  it('that a killed worker had accepted are all that is lost with it', async () => {
    const cluster = await ClusterProcess.start({
      options: { balancing, hangTimeoutMs: 60_000 },
    });
    const port = portOf(cluster);
    const before = openDescriptorsOf(cluster.pid);
    const load = new NewConnections([cluster.url]);
    await load.serves(50);
    let lost = 0;
    for (let kill = 0; kill < 2; kill++) {
      const victim = cluster.workerPids[kill % 2]!;
      const { accepted } = await killInTheMiddle(victim, [port]);
      await load.turnOver();
      await replaced(cluster, victim);
      await load.serves(50);
      const losses = load.takeLost();
      expect(losses.filter(({ clientPort }) => !accepted.has(clientPort!))).toEqual([]);
      lost += losses.length;
    }
    // Else nothing was proved: some had been accepted each time.
    expect(lost).toBeGreaterThan(0);
    await load.stop();
    expect(load.takeLost()).toEqual([]);
    await eventually(
      `no more descriptors than before: ${before}`,
      () => openDescriptorsOf(cluster.pid),
      (now) => now <= before,
    );
  });
});

describe('a drain', () => {
  it('of one worker, a reload and scaling lose nothing', async () => {
    const cluster = await ClusterProcess.start({
      options: { balancing },
      env: { ...CONTROLLED, ...behaviour('builds#works') },
    });
    const control = await PrimaryControl.of(cluster);
    const traffic = new Traffic(cluster.url, 2);
    await traffic.serves(100);

    const leaver = cluster.workerPids[0]!;
    process.kill(leaver, 'SIGTERM');
    await replaced(cluster, leaver);
    await traffic.serves(100);
    expect(traffic.lost).toEqual([]);
    expect(await control.reload()).toMatchObject({ outcome: 'completed', generation: 1 });
    await traffic.serves(100);
    expect(traffic.lost).toEqual([]);
    for (const workers of [3, 1]) {
      expect(await control.scale(workers)).toMatchObject({ desired: workers, ready: workers });
      await traffic.serves(100);
      expect(traffic.lost).toEqual([]);
    }
    expect(await traffic.stop()).toEqual([]);
    for (const stopped of cluster.all('worker-stopped')) {
      expect(stopped).toMatchObject({ problem: null, abortedRequests: 0 });
    }
    expect(cluster.all('worker-died')).toEqual([]);
  });

  it('of all answers what is in flight and refuses the rest', async () => {
    const gates = Gates.forTest();
    const cluster = await ClusterProcess.start({
      options: { balancing },
      env: { ...behaviour('streams#announced'), ...gates.env },
    });
    let answered = false;
    const slow = Array.from({ length: 4 }, () =>
      request(cluster.url, '/gate/slow', { agent: keepAliveAgent() }).finally(
        () => (answered = true),
      ),
    );
    await began(cluster, '/gate/slow', 4);

    cluster.kill('SIGTERM');

    await eventually('a primary that does not listen', () => listenersOf(cluster.pid).length === 0);
    expect(await request(cluster.url, '/hello')).toMatchObject({ outcome: 'refused' });
    expect(answered).toBe(false);
    gates.open('slow');
    for (const answer of await Promise.all(slow)) expect(answer).toMatchObject({ outcome: 'ok' });
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.all('worker-stopped')).toHaveLength(2);
  });
});

describeOnce('the address', () => {
  it('that port 0 became is one for all, and stays when all workers have died', async () => {
    const cluster = await ClusterProcess.start({
      options: { balancing, port: 0 },
    });
    expect(portOf(cluster)).toBeGreaterThan(0);
    const victims = cluster.workerPids;

    for (const pid of victims) process.kill(pid, 'SIGKILL');

    await replaced(cluster, ...victims);
    expect(new Set(await answeredBy(cluster, 10))).toEqual(new Set(cluster.workerPids));
    expect(listenersOf(cluster.pid)).toMatchObject([{ localPort: portOf(cluster) }]);
  });

  it('may be a unix socket, which is there again when all workers have died, and gone in the end', async () => {
    const path = join(temporaryDirectory(), 'app.sock');
    const cluster = await ClusterProcess.start({
      options: { balancing, path, workers: 2 },
    });
    expect(cluster.url).toBe(`unix:${path}`);
    const victims = cluster.workerPids;
    expect((await answeredBy(cluster, 10)).toSorted(ascending)).toEqual(
      Array.from({ length: 10 }, (_, index) => victims.toSorted(ascending)[index < 5 ? 0 : 1]),
    );

    for (const pid of victims) process.kill(pid, 'SIGKILL');

    await replaced(cluster, ...victims);
    expect(new Set(await answeredBy(cluster, 10))).toEqual(new Set(cluster.workerPids));
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(existsSync(path)).toBe(false);
  });

  it('that is taken ends the cluster with 69 before anything is forked', async () => {
    const port = await freePorts(1);
    const holder = await holdPort(port);
    onTestFinished(() => void holder.close());

    const cluster = new ClusterProcess({ options: { balancing, port } });

    expect(await cluster.exited()).toEqual({ code: 69, signal: null });
    expect(cluster.lines).toMatchObject([{ event: 'failed', exitCode: 69 }]);
    expect(cluster.lines[0]!.message).toContain('EADDRINUSE');
    expect(cluster.lines[0]!.message).toContain(`127.0.0.1:${port}`);
    expect(cluster.survivors()).toEqual([]);
  });
});
