import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour, runtimeBehaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { clusterReport, type HealthBody } from '../support/health.js';
import { getJson, Load, request } from '../support/http-client.js';
import { describeOnce } from '../support/once.js';
import { openDescriptorsOf } from '../support/processes.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const OTHER_VERSION = pathToFileURL(
  join(import.meta.dirname, '../fixtures/preload/other-version.mjs'),
).href;

/** Never mistakes a stopped process of a test for a hung one. */
const PATIENT = 120_000;

/** Asks again until an answer took less: a machine that is busy elsewhere delays one, not each. */
async function answeredWithin<T>(ms: number, ask: () => Promise<T>, check: (answer: T) => void) {
  await eventually(
    `an answer within ${ms} ms`,
    async () => {
      const startedAt = performance.now();
      const answer = await ask();
      const tookMs = performance.now() - startedAt;
      check(answer);
      return tookMs;
    },
    (tookMs) => tookMs < ms,
  );
}

/** Kills the workers in turn, each as soon as its place is taken again. */
async function killRepeatedly(cluster: ClusterProcess, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const pids = cluster.workerPids;
    const victim = pids[i % pids.length]!;
    process.kill(victim, 'SIGKILL');
    await cluster.event('worker-died', ({ pid }) => pid === victim);
    await cluster.until('two workers again', () => cluster.workerPids.length === 2);
  }
}

/** One worker whose app sends messages, and a primary whose user code answers those it knows. */
async function startWithMessages(): Promise<ClusterProcess> {
  const cluster = await ClusterProcess.start({
    options: { workers: 1 },
    env: { ...behaviour('messages#sends'), ...runtimeBehaviour('messages#answers') },
  });
  await cluster.until("the user's code in the primary", () =>
    cluster.output.includes('answering\n'),
  );
  return cluster;
}

/**
 * Has the app send messages and then a question, and resolves with what it was
 * sent back. Messages keep their order: that answer says that all were read.
 */
async function sendFromApp(
  cluster: ClusterProcess,
  messages: readonly unknown[],
): Promise<unknown[]> {
  const sent = await request(cluster.url, '/send', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [...messages, { question: 'the name' }] }),
  });
  expect(JSON.parse(sent.body)).toEqual({ sent: messages.length + 1 });
  const { received } = await eventually(
    "the answer of the user's code in the primary",
    async () => (await getJson<{ received: unknown[] }>(cluster.url, '/received')).body,
    (body) => body.received.length > 0,
  );
  return received;
}

describe('the primary', () => {
  it('survives to send to workers that die', async () => {
    const cluster = await ClusterProcess.start();
    const loads = ['/health', '/metrics', '/health/ready'].map(
      (path) => new Load(cluster.url, path, { clients: 4, pauseMs: 10 }),
    );

    await killRepeatedly(cluster, 2);
    // Both at once: there is nobody left to send to.
    const last = cluster.workerPids;
    for (const pid of last) process.kill(pid, 'SIGKILL');
    await cluster.until(
      'two workers again',
      () =>
        cluster.workerPids.every((pid) => !last.includes(pid)) && cluster.workerPids.length === 2,
    );

    for (const load of loads) {
      const outcomes = await load.stop();
      expect(outcomes.ok).toBeGreaterThan(0);
      // Only what was in flight on a worker that was killed may fail, by a reset.
      expect(outcomes).toMatchObject({ 'bad-status': 0, refused: 0, timeout: 0 });
    }
    expect(cluster.child.exitCode).toBeNull();
    expect(cluster.all('warning')).toEqual([]);
    expect(cluster.all('worker-died')).toHaveLength(4);
    expect((await clusterReport(cluster.url)).ready).toBe(2);
  });

  it('replaces a worker that closes the channel itself and goes on sending', async () => {
    const cluster = await ClusterProcess.start({
      env: behaviour('messages#disconnects'),
    });

    const { body } = await getJson<{ connected: boolean }>(cluster.url, '/disconnect');
    expect(body.connected).toBe(false);

    const died = await cluster.event('worker-died');
    await cluster.event(
      'worker-ready',
      ({ worker, pid }) => worker === died.worker && pid !== died.pid,
    );
    expect(died.cause).toBe('exit');
    expect(cluster.survivors()).not.toContain(died.pid);
    expect((await clusterReport(cluster.url)).ready).toBe(2);
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  });

  it('survives that a worker closes the channel while it drains', async () => {
    const cluster = await ClusterProcess.start({
      options: { shutdown: { lameDuckMs: 60_000, drainTimeoutMs: 60_000 } },
      env: behaviour('messages#disconnects'),
    });
    cluster.kill('SIGTERM');
    await cluster.until('two draining workers', () => cluster.all('worker-draining').length === 2);

    expect((await request(cluster.url, '/disconnect')).outcome).toBe('ok');
    // Forced, so that the test need not wait for its lame duck.
    cluster.kill('SIGTERM');

    expect((await cluster.exited()).code).toBe(143);
    expect(cluster.survivors()).toEqual([]);
  });

  it('leaves the messages of the app to the app', async () => {
    const cluster = await startWithMessages();
    const pids = cluster.workerPids;
    const messages = [
      null,
      'text',
      { type: 'ready' },
      { v: 1, type: 'drained' },
      { ns: 'somebody-else', v: 1, type: 'leaving' },
      { ns: { toString: null }, v: 1, type: 'leaving' },
      { cmd: 'NODE_x' },
      { cmd: 'NODE_CLUSTER' },
      { cmd: 'NODE_CLUSTER', act: 'nothing that exists', seq: 1e9, ack: 1e9 },
      JSON.parse('{"__proto__":{"ns":"nestjs-cluster","v":1,"type":"leaving"}}'),
    ];

    const received = await sendFromApp(cluster, messages);

    expect(received).toEqual([{ answer: 'the name of worker 1' }]);
    expect(cluster.all('warning')).toEqual([]);
    expect(cluster.workerPids).toEqual(pids);
    expect((await clusterReport(cluster.url)).ready).toBe(1);
  });
});

it('a release with another version of the protocol is refused, and the cluster serves on', async () => {
  const broken = join(temporaryDirectory(), 'broken');
  const cluster = await ClusterProcess.start({
    options: { workers: 1 },
    env: { TEST_BROKEN: broken },
    execArgv: ['--import', OTHER_VERSION],
  });
  const pids = cluster.workerPids;

  writeFileSync(broken, '');
  cluster.kill('SIGHUP');

  // Long before its boot would time out.
  expect(await cluster.event('reload-ended')).toMatchObject({
    outcome: 'aborted',
    reason: expect.stringContaining('speaks version 2 of the protocol') as string,
  });
  expect(cluster.workerPids).toEqual(pids);
  expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
});

describeOnce('while the primary does not answer', () => {
  it('/health tells the last known state and its age within 1 s', async () => {
    const cluster = await ClusterProcess.start({ options: { hangTimeoutMs: PATIENT } });
    const pids = cluster.workerPids;
    const { workers: booted } = await clusterReport(cluster.url);
    // By then each worker has learned from a heartbeat that the other is ready too.
    const { snapshotAgeMs: before } = await eventually(
      'a heartbeat after the last of them became ready',
      () => clusterReport(cluster.url),
      ({ workers }) =>
        workers.every(({ uptimeSeconds }, i) => uptimeSeconds > booted[i]!.uptimeSeconds + 3),
    );
    expect(before).toBeUndefined();

    cluster.kill('SIGSTOP');

    const ask = () => getJson<HealthBody>(cluster.url, '/health');
    await answeredWithin(1_000, ask, ({ status, body }) => {
      expect(status).toBe(200);
      expect(body.details.cluster).toMatchObject({ status: 'up', desired: 2, ready: 2 });
      expect(body.details.cluster.workers.map(({ pid }) => pid)).toEqual(pids);
      expect(body.details.cluster.snapshotAgeMs).toBeGreaterThan(0);
    });

    cluster.kill('SIGCONT');
    const { snapshotAgeMs } = await eventually(
      'a fresh snapshot',
      () => clusterReport(cluster.url),
      (report) => report.snapshotAgeMs === undefined,
    );
    expect(snapshotAgeMs).toBeUndefined();
    expect(cluster.workerPids).toEqual(pids);
  });

  it('/metrics answers too', async () => {
    const cluster = await ClusterProcess.start({ options: { hangTimeoutMs: PATIENT } });
    await request(cluster.url, '/metrics');

    cluster.kill('SIGSTOP');

    const ask = () => request(cluster.url, '/metrics');
    await answeredWithin(1_500, ask, ({ outcome }) => expect(outcome).toBe('ok'));
  });

  it('no request hangs, however much is waiting in the channel', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, hangTimeoutMs: PATIENT },
      env: behaviour('metrics#big'),
    });
    expect((await request(cluster.url, '/metrics')).outcome).toBe('ok');

    cluster.kill('SIGSTOP');

    const outcomes = [];
    for (let i = 0; i < 4; i++) {
      for (const path of ['/metrics', '/health']) {
        const { outcome } = await request(cluster.url, path, { timeoutMs: 20_000 });
        outcomes.push(`${path} ${outcome}`);
      }
    }
    expect([...new Set(outcomes)]).toEqual(['/metrics ok', '/health ok']);
    cluster.kill('SIGCONT');
    await eventually(
      'a fresh snapshot',
      () => clusterReport(cluster.url),
      (report) => report.snapshotAgeMs === undefined,
    );
  });

  it.each(['/health', '/metrics'])(
    'a request for %s that is pending as it dies is answered or ended',
    async (path) => {
      const cluster = await ClusterProcess.start({
        options: { workers: 1, hangTimeoutMs: PATIENT },
        env: behaviour('streams#announced'),
      });
      await request(cluster.url, path);
      cluster.kill('SIGSTOP');
      const before = cluster.output.length;
      const pending = request(cluster.url, path);
      await cluster.until('the request in a worker', () =>
        cluster.output.slice(before).includes(`began GET ${path}`),
      );

      cluster.kill('SIGKILL');

      // No timeout of the client.
      const { outcome, status } = await pending;
      expect(['ok', 'bad-status', 'reset']).toContain(outcome);
      if (outcome === 'bad-status') expect(status).toBe(503);
      await cluster.gone();
    },
  );
});

describeOnce('a worker that is stopped', () => {
  it('is not sent without bound what it does not read', async () => {
    const cluster = await ClusterProcess.start({
      options: { hangTimeoutMs: 120_000 },
      env: behaviour('metrics#big'),
    });
    const [stopped] = cluster.workerPids;
    await request(cluster.url, '/metrics');
    process.kill(stopped!, 'SIGSTOP');

    // Each would be 300 kB more for it, if it were asked or told every time.
    const load = new Load(cluster.url, '/metrics', { clients: 4 });
    await eventually(
      '100 scrapes',
      () => load.outcomes.ok,
      (ok) => ok >= 100,
    );

    expect(await load.stop()).toMatchObject({ 'bad-status': 0, reset: 0, refused: 0, timeout: 0 });
    process.kill(stopped!, 'SIGCONT');
    await eventually(
      'its heartbeats',
      async () => (await clusterReport(cluster.url)).workers[0]!.heartbeatAgeMs,
      (ageMs) => ageMs !== null && ageMs < 1_000,
    );
    expect(cluster.workerPids).toContain(stopped);
  });
});

it('a connection beside a message that nobody takes does not stay open in the primary', async () => {
  const cluster = await ClusterProcess.start({
    options: { workers: 1 },
    env: behaviour('messages#sends'),
  });
  const before = openDescriptorsOf(cluster.child.pid!);
  const sent = await request(cluster.url, '/handles', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ count: 100 }),
  });
  expect(JSON.parse(sent.body)).toEqual({ sent: 100 });
  await eventually(
    'they are closed',
    () => openDescriptorsOf(cluster.child.pid!),
    (open) => open < before + 10,
  );
});
