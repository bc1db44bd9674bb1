import { once } from 'node:events';
import https from 'node:https';
import type net from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { selfSignedCertificate } from '../support/certificate.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { began, cutBy, NOTHING_CUT } from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import { freePorts, holdPort } from '../support/free-ports.js';
import { clusterReport } from '../support/health.js';
import { HeldBoots } from '../support/held-boots.js';
import { getJson, request } from '../support/http-client.js';
import { Http2Client } from '../support/http2-client.js';
import { keepAliveAgent } from '../support/keep-alive-agent.js';
import { acceptedBy, listenersOf } from '../support/kernel-sockets.js';
import { freeze, isFrozen, killInTheMiddle, outcomes, queueAt } from '../support/killed-worker.js';
import { NewConnections } from '../support/new-connections.js';
import { Gates } from '../support/offload.js';
import { describeOnce, itOnce } from '../support/once.js';
import { PATIENCE_MS } from '../support/patience.js';
import { CONTROLLED, PrimaryControl, type Refusal } from '../support/primary-control.js';

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

/** Listens on a port until the test is finished. */
async function heldPort(port: number): Promise<net.Server> {
  const holder = await holdPort(port);
  onTestFinished(() => void holder.close());
  return holder;
}

describe('under clients of each port that open a new connection for each request', () => {
  let first: number;
  let ports: readonly number[];
  let cluster: ClusterProcess;
  let control: PrimaryControl;
  let load: NewConnections;

  beforeAll(async () => {
    first = await freePorts(6);
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
    expect(load.takeLost()).toEqual([]);
  });

  itOnce('the log names the first port and the last, and /health all of them', async () => {
    const [listening] = cluster.all('listening');

    expect(listening).toMatchObject({ url: urlOf(first), balancing, ports });
    expect(listening!.message).toContain(`listening on ${urlOf(first)} to ${first + 2} (`);
    expect(listening!.message).toContain('balancing=ports');
    for (const port of ports) {
      expect(await clusterReport(urlOf(port))).toMatchObject({ balancing, ports });
    }
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
      const losses = load.takeLost();
      expect(losses.filter(({ clientPort }) => !accepted.has(clientPort!))).toEqual([]);
      lost += losses.length;
    }
    // Else nothing was proved: some had been accepted.
    expect(lost).toBeGreaterThan(0);
    await settled(cluster, ports);
    expect(cluster.all('worker-died').map(({ cause }) => cause)).toEqual(
      Array.from({ length: 4 }, () => 'killed'),
    );
    expect(load.takeLost()).toEqual([]);
  });

  it('answers afterwards what came to each port while all workers were dead', async () => {
    const victims = cluster.workerPids;
    await Promise.all(victims.map(freeze));
    const accepted = new Set(victims.flatMap((pid) => [...acceptedBy(pid, ports)]));
    const queued = await Promise.all(victims.map((pid, slot) => queueAt(pid, urlOf(ports[slot]!))));
    for (const pid of victims) process.kill(pid, 'SIGKILL');

    expect(outcomes(await Promise.all(queued.flat()))).toEqual(['ok']);

    await settled(cluster, ports);
    const losses = load.takeLost();
    expect(losses.filter(({ clientPort }) => !accepted.has(clientPort!))).toEqual([]);
  });

  it('loses nothing in a reload, on any port', async () => {
    const generation = 1;
    expect(await control.reload()).toMatchObject({ outcome: 'completed', generation });
    await settled(cluster, ports);
    for (const [slot, port] of ports.entries()) {
      expect(await whoami(port)).toMatchObject({ slot, generation });
    }
    await load.turnOver();
    expect(load.takeLost()).toEqual([]);
  });

  it('answers on the port of a worker that stands still, and gives it back', async () => {
    const still = cluster.workerPids[1]!;

    await freeze(still);
    const answers = await Promise.all(await queueAt(still, urlOf(ports[1]!)));

    expect(outcomes(answers)).toEqual(['ok']);
    expect(isFrozen(still)).toBe(true);
    for (const { body } of answers) expect(JSON.parse(body)).not.toMatchObject({ slot: 1 });
    process.kill(still, 'SIGCONT');
    await settled(cluster, ports);
    expect(await whoami(ports[1]!)).toMatchObject({ slot: 1, pid: still });
    await load.turnOver();
    expect(load.takeLost()).toEqual([]);
  });

  itOnce(
    'answers on the ports of slots that were scaled away, and on those that come',
    async () => {
      const [survivor] = cluster.workerPids as [number];

      expect(await control.scale(1)).toMatchObject({ desired: 1, ready: 1 });

      for (const port of ports)
        expect(await whoami(port)).toMatchObject({ slot: 0, pid: survivor });
      await load.serves(100);
      expect(load.takeLost()).toEqual([]);

      expect(await control.scale(4)).toMatchObject({ desired: 4, ready: 4 });

      await settled(cluster, [...ports, first + 3]);
      for (const [slot, port] of [...ports, first + 3].entries()) {
        expect(await whoami(port)).toMatchObject({ slot });
      }
      expect(await clusterReport(urlOf(first + 3))).toMatchObject({ ports: [...ports, first + 3] });
      await load.turnOver();
      expect(load.takeLost()).toEqual([]);
    },
  );

  itOnce('refuses to scale onto a port that is taken, names it, and serves on', async () => {
    const before = await control.snapshot();
    const scalings = cluster.all('scaling').length;
    const warnings = cluster.all('warning').length;
    const holder = await heldPort(first + 5);
    const refusal = (port: number) => ({
      name: 'ClusterAddressError',
      code: 'CLUSTER_ADDRESS_UNAVAILABLE',
      message: expect.stringMatching(
        new RegExp(`^cannot listen on http://127\\.0\\.0\\.1:${port}: .*EADDRINUSE`),
      ),
    });

    expect((await control.scale<Refusal>(6)).error).toEqual(refusal(first + 5));

    const within = await request(urlOf(first), '/scale/6', { method: 'POST' });
    expect(JSON.parse(within.body)).toMatchObject({ error: refusal(first + 5) });
    // The port before it was free, and is again.
    const another = await heldPort(first + 4);

    cluster.kill('SIGTTIN');

    const warning = await cluster.event('warning', ({ message }) => message.includes('SIGTTIN'));
    expect(warning).toMatchObject({ level: 'warn' });
    expect(warning.message).toContain(`${urlOf(first + 4)}: `);
    expect(warning.message).toContain('EADDRINUSE');
    expect(cluster.all('warning')).toHaveLength(warnings + 1);
    expect(cluster.all('scaling')).toHaveLength(scalings);
    expect(await control.snapshot()).toMatchObject({ desired: before.desired, ready: 4 });
    await load.serves(50);
    expect(load.takeLost()).toEqual([]);

    for (const server of [holder, another]) server.close();

    expect(await control.scale(6)).toMatchObject({ desired: 6, ready: 6 });
    await settled(cluster, [...ports, first + 3, first + 4, first + 5]);
    expect(await whoami(first + 5)).toMatchObject({ slot: 5 });
    expect(load.takeLost()).toEqual([]);
  });
});

describeOnce('a port without a worker of its own', () => {
  afterEach(stopAll);

  it('is answered by the others, and closed in a drain like theirs', async () => {
    const gates = Gates.forTest();
    const first = await freePorts(2);
    const boots = new HeldBoots();
    const cluster = await ClusterProcess.start({
      options: { balancing, port: first },
      execArgv: boots.execArgv,
      env: { ...behaviour('streams#announced'), ...gates.env, ...boots.env },
    });
    boots.begin();
    process.kill(cluster.workerPids[1]!, 'SIGKILL');
    await cluster.event('worker-died');
    const [pid] = cluster.workerPids as [number];
    for (const port of [first, first + 1]) {
      for (let i = 0; i < 5; i++) expect(await whoami(port)).toMatchObject({ slot: 0, pid });
    }
    let answered = false;
    const slow = [first, first + 1].map((port) =>
      request(urlOf(port), '/gate/slow', { agent: keepAliveAgent() }).finally(
        () => (answered = true),
      ),
    );
    await began(cluster, '/gate/slow', 2);

    cluster.kill('SIGTERM');

    await eventually(
      'nobody who listens',
      () => [...portsOf(pid), ...portsOf(cluster.pid)].length === 0,
    );
    for (const port of [first, first + 1]) {
      expect(await request(urlOf(port), '/hello')).toMatchObject({ outcome: 'refused' });
    }
    expect(answered).toBe(false);
    gates.open('slow');
    expect(outcomes(await Promise.all(slow))).toEqual(['ok']);
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    const stopped = cluster.all('worker-stopped').filter(({ worker }) => worker === 0);
    expect(stopped).toMatchObject([{ pid, abortedRequests: 0, problem: null }]);
  });

  it('is answered by the others also where its worker died as soon as it listened', async () => {
    const first = await freePorts(2);
    const cluster = new ClusterProcess({
      options: { balancing, port: first },
      env: behaviour('crashes#diesAtListening'),
    });
    await cluster.event('worker-died', ({ worker }) => worker === 1);
    await cluster.event('worker-ready', ({ worker }) => worker === 0);

    expect(await request(urlOf(first + 1), '/whoami')).toMatchObject({
      outcome: 'ok',
      body: expect.stringContaining('"slot":0'),
    });
  });

  it.each(['https', 'http2-tls'])(
    'is answered as their own, and drains like it, on %s',
    async (server) => {
      const first = await freePorts(2);
      const boots = new HeldBoots();
      const cluster = await ClusterProcess.start({
        options: { balancing, port: first },
        execArgv: boots.execArgv,
        env: {
          ...boots.env,
          TEST_SERVER: server,
          TEST_TLS: JSON.stringify(selfSignedCertificate()),
        },
      });
      boots.begin();
      process.kill(cluster.workerPids[1]!, 'SIGKILL');
      await cluster.event('worker-died');
      const url = `https://127.0.0.1:${first + 1}`;
      const [pid] = cluster.workerPids;

      if (server === 'https') {
        const agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false });
        onTestFinished(() => agent.destroy());
        const [response] = (await once(https.get(`${url}/whoami`, { agent }), 'response', {
          signal: AbortSignal.timeout(PATIENCE_MS),
        })) as [AsyncIterable<Buffer>];
        expect(await json(response)).toMatchObject({ slot: 0, pid });
      } else {
        const client = await Http2Client.open(url);
        expect(await client.getJson('/whoami')).toMatchObject({ slot: 0, pid });
      }
      cluster.kill('SIGTERM');

      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
      // The worker that is held in its boot is stopped too, if it was forked in time.
      const stopped = cluster.all('worker-stopped').filter((line) => line.pid === pid);
      expect(stopped).toMatchObject([{ problem: null }]);
      expect(cutBy(stopped)).toEqual(NOTHING_CUT);
    },
  );
});

describeOnce('a port in the middle that is taken', () => {
  afterEach(stopAll);

  it('ends the cluster with 69 and is named, and nothing stays bound', async () => {
    const first = await freePorts(3);
    await heldPort(first + 1);

    const cluster = new ClusterProcess({ options: { balancing, port: first, workers: 3 } });

    expect(await cluster.exited()).toEqual({ code: 69, signal: null });
    expect(cluster.lines).toMatchObject([{ event: 'failed', exitCode: 69 }]);
    expect(cluster.lines[0]!.message).toContain('EADDRINUSE');
    expect(cluster.lines[0]!.message).toContain(`127.0.0.1:${first + 1}:`);
    expect(cluster.survivors()).toEqual([]);
    await heldPort(first);
    await heldPort(first + 2);
  });
});
