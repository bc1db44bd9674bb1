import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import type http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import type { ClusterOptions } from 'nestjs-cluster';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour, runtimeBehaviour } from '../support/behaviour.js';
import { ClusterProcess, type LogLine, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { getJson, Load, type Outcome, request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { MetricsPage } from '../support/metrics-page.js';
import { openDescriptorsOf } from '../support/process-stats.js';
import { childrenOf, isReaped } from '../support/processes.js';
import { ANNOUNCE_PROCESSES, startedProcesses } from '../support/started-processes.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

/** A program whose workers are ready within a moment. */
const BARE = join(import.meta.dirname, '../fixtures/bare.mjs');

const timeOf = (line: LogLine): number => Date.parse(String(line['time']));

/** When the worker that this line reports as ready was forked. */
const forkedAt = (ready: LogLine): number => timeOf(ready) - Number(ready['bootMs']);

/** Resolves with the worker that takes the place of one that ended, or is about to. */
function replacementOf(cluster: ClusterProcess, slot: number, pid: number): Promise<LogLine> {
  const ready = () => cluster.all('worker-ready').filter((line) => line.worker === slot);
  const own = ready().findIndex((line) => line.pid === pid);
  return cluster.event('worker-ready', (line) => ready().indexOf(line) > own);
}

/** The restarts that `/metrics` tells, by cause. */
async function expectRestarts(
  cluster: ClusterProcess,
  causes: Readonly<Record<string, number>>,
): Promise<void> {
  const page = new MetricsPage((await request(cluster.url, '/metrics')).body);
  const name = 'nestjs_cluster_worker_restarts_total';
  const counted = page
    .labelValues(name, 'cause')
    .map((cause) => [cause, page.sum(name, { cause })] as const)
    .filter(([, count]) => count > 0);
  expect(Object.fromEntries(counted)).toEqual(causes);
}

function limitDescriptors(pid: number, limits: string): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limits}`]);
}

/** Clients on one connection each, that know which worker theirs leads to. */
class PinnedClients {
  readonly failures: { readonly outcome: Outcome; readonly pid: number }[] = [];
  #stopped = false;
  readonly #clients: Promise<void>[];

  constructor(base: string, agents: readonly (readonly [pid: number, agent: http.Agent])[]) {
    this.#clients = agents.map(async ([connectedTo, agent]) => {
      let pid = connectedTo;
      while (!this.#stopped) {
        const { outcome, body } = await request(base, '/whoami', { agent });
        if (outcome === 'ok') pid = (JSON.parse(body) as { pid: number }).pid;
        else this.failures.push({ outcome, pid });
      }
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#clients);
  }
}

describe('a worker that is killed', () => {
  it('takes only its requests in flight with it, and is replaced (C1)', async () => {
    const cluster = await ClusterProcess.start();
    const [victim, survivor] = cluster.workerPids as [number, number];
    const pinned = new PinnedClients(cluster.url, [
      [victim, await agentOf(cluster.url, victim)],
      [victim, await agentOf(cluster.url, victim)],
      [survivor, await agentOf(cluster.url, survivor)],
      [survivor, await agentOf(cluster.url, survivor)],
    ]);
    const clients = 4;
    const load = new Load(cluster.url, '/hello', { clients });
    await load.served(50);

    process.kill(victim, 'SIGKILL');

    const died = await cluster.event('worker-died');
    const ready = await replacementOf(cluster, died.worker!, victim);
    await load.served(50);
    await pinned.stop();
    const outcomes = await load.stop();
    // Each client of the victim lost the one request it had there, and no other did.
    expect(outcomes).toMatchObject({ refused: 0, timeout: 0, 'bad-status': 0 });
    expect(outcomes.reset).toBeLessThanOrEqual(clients);
    expect(pinned.failures).toEqual([
      { outcome: 'reset', pid: victim },
      { outcome: 'reset', pid: victim },
    ]);

    expect(died).toMatchObject({ level: 'error', worker: 0, pid: victim, cause: 'killed' });
    expect(died.message).toContain(`worker=0 gen=0 pid=${victim} `);
    expect(died.message).toContain('SIGKILL');
    expect(died.message).toContain('out-of-memory killer');
    expect(ready).toMatchObject({ worker: 0 });
    expect(forkedAt(ready) - timeOf(died)).toBeLessThan(2_000);
    expect(cluster.workerPids).toEqual([ready.pid, survivor]);
    expect(isReaped(victim)).toBe(true);
  });

  it('leaves the connections made while none is alive waiting, not refused (C1)', async () => {
    const cluster = await ClusterProcess.start({
      options: { restart: { backoffMs: 1_000, jitterRatio: 0 } },
    });

    for (const pid of cluster.workerPids) process.kill(pid, 'SIGKILL');
    await cluster.until('the end of both', () => cluster.all('worker-died').length === 2);

    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const { outcome } = await request(cluster.url, '/hello', { timeoutMs: 20_000 });
        return { outcome, workers: cluster.all('worker-ready').length };
      }),
    );
    // None was answered before the first replacement was ready.
    for (const { outcome, workers } of answers) {
      expect(outcome).toBe('ok');
      expect(workers).toBeGreaterThan(2);
    }
  });

  it('is replaced ten times in a row, and somebody always serves', async () => {
    const cluster = await ClusterProcess.start({
      program: BARE,
      options: { restart: { maxBackoffMs: 500 } },
    });
    const clients = 4;
    const load = new Load(cluster.url, '/', { clients });

    for (let kill = 0; kill < 10; kill++) {
      const slot = kill % 2;
      const victim = cluster.workerPids[slot]!;
      const replaced = replacementOf(cluster, slot, victim);
      process.kill(victim, 'SIGKILL');
      await load.served(20);
      await replaced;
    }

    const outcomes = await load.stop();
    expect(outcomes).toMatchObject({ refused: 0, timeout: 0, 'bad-status': 0 });
    expect(outcomes.reset).toBeLessThanOrEqual(10 * clients);
    expect(cluster.all('worker-died')).toHaveLength(10);
    expect(cluster.all('failed')).toEqual([]);
    expect(cluster.all('stopping')).toEqual([]);
    expect(new Set(childrenOf(cluster.pid))).toEqual(new Set(cluster.workerPids));
  });
});

describe('a worker that ends by its own fault', () => {
  it.each([
    { fault: 'by process.abort() (C4)', path: '/faults/abort', cause: 'crash', detail: 'SIGABRT' },
    {
      fault: 'by process.exit(0)',
      path: '/faults/exit',
      cause: 'exit',
      detail: 'exited with code 0',
    },
  ])('$fault is replaced, and no other is', async ({ path, cause, detail }) => {
    const cluster = await ClusterProcess.start({ env: behaviour('faults') });
    const pids = cluster.workerPids;

    const { pid } = (await getJson<{ pid: number }>(cluster.url, path)).body;

    const died = await cluster.event('worker-died');
    const slot = pids.indexOf(pid);
    expect(died).toMatchObject({ level: 'error', worker: slot, pid, cause });
    expect(died.message).toContain(detail);
    const ready = await replacementOf(cluster, slot, pid);
    expect(cluster.workerPids).toEqual(pids.map((before) => (before === pid ? ready.pid : before)));
    expect(cluster.all('worker-died')).toHaveLength(1);
    await expectRestarts(cluster, { [cause]: 1 });
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
  });
});

/** Two workers, or one; the first has a request in flight that waits for `release()`. */
async function startWithHeldRequest(options: ClusterOptions = {}) {
  const file = join(temporaryDirectory(), 'release');
  const cluster = await ClusterProcess.start({
    options: { heartbeat: { intervalMs: 100 }, ...options },
    env: { ...behaviour('crash-routes'), TEST_RELEASE: file },
  });
  const [victim, other] = cluster.workerPids as [number, number?];
  const [holding, crashing] = [
    await agentOf(cluster.url, victim),
    await agentOf(cluster.url, victim),
  ];
  const held = request(cluster.url, '/hold', { agent: holding, timeoutMs: 30_000 });
  await eventually(
    'the request in flight',
    async () => (await clusterReport(cluster.url)).workers.find(({ pid }) => pid === victim),
    (worker) => (worker?.requestsInFlight ?? 0) > 0,
  );
  return {
    cluster,
    victim,
    other,
    held,
    /** Has the first worker crash by a route of the behaviour. */
    crash: async (path: string): Promise<LogLine> => {
      await request(cluster.url, path, { agent: crashing });
      return cluster.event('worker-failing');
    },
    release: () => writeFileSync(file, ''),
  };
}

describe('an error in a worker that nobody caught', () => {
  it.each([
    { what: 'an exception', path: '/crash/throw', text: 'thrown outside of a request' },
    { what: 'a rejection', path: '/crash/reject', text: 'rejected outside of a request' },
  ])(
    'has it replaced at once, while it answers what it has begun, and ends then: $what (C2)',
    async ({ path, text }) => {
      const { cluster, victim, other, held, crash, release } = await startWithHeldRequest();

      const failing = await crash(path);

      expect(failing).toMatchObject({ level: 'error', worker: 0, pid: victim });
      expect(failing['error']).toMatchObject({ name: 'Error', message: text });
      expect(failing.message).toContain(`Error: ${text} at `);
      expect(failing.message).toContain('crash-routes.mjs');
      expect(cluster.output).toMatch(new RegExp(`Error: ${text}\n +at throwNow `));
      const ready = await replacementOf(cluster, 0, victim);
      expect(cluster.all('worker-died')).toEqual([]);
      for (let i = 0; i < 20; i++) {
        expect((await getJson(cluster.url, '/whoami')).body.pid).not.toBe(victim);
      }
      release();
      expect(await held).toMatchObject({ outcome: 'ok', headers: { connection: 'close' } });
      const died = await cluster.event('worker-died');
      expect(died).toMatchObject({ level: 'error', pid: victim, cause: 'crash' });
      expect(died['error']).toMatchObject({ message: text });
      expect(isReaped(victim)).toBe(true);

      expect(cluster.workerPids).toEqual([ready.pid, other]);
      expect(cluster.all('worker-died')).toHaveLength(1);
      expect(cluster.all('worker-restarting')).toMatchObject([{ slot: 0 }]);
      const { workers } = await clusterReport(cluster.url);
      expect(workers[0]!.lastExit).toMatchObject({ cause: 'crash', code: 1 });
      await expectRestarts(cluster, { crash: 1 });
    },
  );

  it('cuts what is still in flight at the drain deadline (C2)', async () => {
    const { cluster, victim, held, crash } = await startWithHeldRequest({
      workers: 1,
      shutdown: { drainTimeoutMs: 500 },
    });

    await crash('/crash/throw');

    expect((await held).outcome).toBe('reset');
    expect(await cluster.event('worker-died')).toMatchObject({ pid: victim, cause: 'crash' });
  });

  it.each([
    { what: 'by a second one', path: '/crash/twice', first: 'thrown first' },
    { what: 'by a storm of them', path: '/crash/storm', first: 'thrown again and again' },
  ])('is not kept from its drain $what (C2)', async ({ path, first }) => {
    const { cluster, victim, held, crash, release } = await startWithHeldRequest();

    await crash(path);
    const printed = /^Error: thrown (while draining|again and again)$/gm;
    const atLeast = path === '/crash/twice' ? 1 : 50;
    await cluster.until(
      'more errors',
      () => (cluster.output.match(printed)?.length ?? 0) >= atLeast,
    );
    release();

    expect((await held).outcome).toBe('ok');
    const died = await cluster.event('worker-died');
    expect(died).toMatchObject({ pid: victim, cause: 'crash', error: { message: first } });
    await replacementOf(cluster, 0, victim);
    expect(cluster.all('worker-failing')).toHaveLength(1);
    expect(cluster.all('worker-died')).toHaveLength(1);
    await expectRestarts(cluster, { crash: 1 });
  });

  it('counts once where the worker ends before its drain does (C2)', async () => {
    const { cluster, victim, held, crash } = await startWithHeldRequest();

    await crash('/crash/exit-while-draining');

    expect((await held).outcome).toBe('reset');
    expect(await cluster.event('worker-died')).toMatchObject({ pid: victim, cause: 'crash' });
    await replacementOf(cluster, 0, victim);
    expect(cluster.all('worker-restarting')).toHaveLength(1);
    await expectRestarts(cluster, { crash: 1 });
  });

  it('that throws nothing at all is one like any other (C2)', async () => {
    const { cluster, victim, held, crash, release } = await startWithHeldRequest({ workers: 1 });

    expect(await crash('/crash/nothing')).toMatchObject({ pid: victim, level: 'error' });

    release();
    expect((await held).outcome).toBe('ok');
    expect(await cluster.event('worker-died')).toMatchObject({ pid: victim, cause: 'crash' });
  });

  it('does not hold up a shutdown, nor is it cut by one (C2)', async () => {
    const { cluster, held, crash, release } = await startWithHeldRequest({ workers: 1 });
    await crash('/crash/throw');

    cluster.kill('SIGTERM');

    await cluster.event('stopping');
    release();
    expect((await held).outcome).toBe('ok');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.survivors()).toEqual([]);
  });

  it('that comes in a lame duck ends that, is told, and lets the exit code be another than 0', async () => {
    const { cluster, victim, held, crash, release } = await startWithHeldRequest({
      workers: 1,
      shutdown: { lameDuckMs: 600_000 },
    });
    cluster.kill('SIGTERM');
    await cluster.event('worker-draining');

    const failing = await crash('/crash/throw');

    expect(failing).toMatchObject({ level: 'error', worker: 0, pid: victim });
    expect(failing['error']).toMatchObject({ message: 'thrown outside of a request' });
    // The primary still holds the socket: who comes now is accepted by nobody.
    await eventually(
      'nobody accepts',
      () => request(cluster.url, '/hello', { timeoutMs: 1_000 }),
      ({ outcome }) => outcome !== 'ok',
      10_000,
    );
    release();
    expect((await held).outcome).toBe('ok');
    const stopped = await cluster.event('worker-stopped');
    expect(stopped).toMatchObject({ level: 'error', pid: victim, abortedRequests: 0 });
    expect(stopped['problem']).toContain('Error: thrown outside of a request');
    expect(await cluster.exited()).toEqual({ code: 1, signal: null });
    expect(cluster.all('worker-failing')).toHaveLength(1);
    expect(cluster.all('worker-died')).toEqual([]);
  });

  it('is left to the app where that has a handler of its own (C2)', async () => {
    const cluster = await ClusterProcess.start({
      env: { ...behaviour('crash-routes'), TEST_HANDLES: '1' },
    });
    const pids = cluster.workerPids;

    for (const path of ['/crash/throw', '/crash/reject']) await request(cluster.url, path);

    for (const text of ['thrown outside of a request', 'rejected outside of a request']) {
      await cluster.until('its handler', () => cluster.output.includes(`app handles: ${text}`));
    }
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
    expect(cluster.all('worker-failing')).toEqual([]);
    expect(cluster.all('worker-died')).toEqual([]);
    expect(cluster.workerPids).toEqual(pids);
  });
});

describe('a crash loop', () => {
  it('of one slot is slowed down and called degraded, while the others serve (C6)', async () => {
    const cluster = new ClusterProcess({
      options: { restart: { jitterRatio: 0 } },
      env: { ...runtimeBehaviour('crash-when-ready'), TEST_SLOTS: '1' },
    });
    await Promise.all([
      cluster.event('listening'),
      cluster.event('worker-ready', (line) => line.worker === 0),
    ]);
    const load = new Load(cluster.url, '/hello', { clients: 2 });

    await cluster.event('worker-restarting', (line) => line['degraded'] === true, 30_000);

    const restarts = cluster.all('worker-restarting');
    expect(restarts.map((line) => [line['slot'], line['delayMs']])).toEqual([
      [1, 100],
      [1, 200],
      [1, 400],
      [1, 800],
      [1, 15_000],
    ]);
    expect(restarts.at(-1)).toMatchObject({ level: 'error' });
    // It waited as long as it said: each next worker was forked that much later.
    const failures = cluster.all('worker-failing');
    const births = cluster.all('worker-ready').filter((line) => line.worker === 1);
    expect(births).toHaveLength(5);
    for (const [index, delayMs] of [100, 200, 400, 800].entries()) {
      // The clock that stamps lines is not the one that measures: some ms of slack.
      expect(forkedAt(births[index + 1]!) - timeOf(failures[index]!)).toBeGreaterThan(delayMs - 20);
    }
    const { body } = await getJson(cluster.url, '/health');
    expect(body.details.cluster).toMatchObject({ desired: 2, ready: 1, degraded: 1 });
    expect(cluster.all('worker-ready').filter((line) => line.worker === 0)).toHaveLength(1);
    await load.served(10);
    expect(await load.stop()).toMatchObject({ refused: 0, timeout: 0, 'bad-status': 0 });
  });

  it('of every slot ends the cluster with 70, and without a storm of forks (C7)', async () => {
    const cluster = new ClusterProcess({
      options: { restart: { maxFailures: 2 } },
      env: { ...runtimeBehaviour('crash-when-ready'), TEST_SLOTS: '0,1' },
      execArgv: ANNOUNCE_PROCESSES,
    });

    expect(await cluster.exited(30_000)).toEqual({ code: 70, signal: null });

    expect(cluster.all('failed')).toMatchObject([
      { error: { message: 'crashes whenever it is ready' } },
    ]);
    expect(startedProcesses(cluster).length).toBeLessThanOrEqual(1 + 2 * 2);
    expect(cluster.survivors()).toEqual([]);
  });

  it('at a cadence just above the stable time is found out, and is over once a worker lives (C8)', async () => {
    const broken = join(temporaryDirectory(), 'broken');
    writeFileSync(broken, '');
    const stableAfterMs = 800;
    const cluster = await ClusterProcess.start({
      options: {
        heartbeat: { intervalMs: 100 },
        // No two failures fall into one window.
        restart: {
          stableAfterMs,
          windowMs: 500,
          maxFailures: 3,
          maxBackoffMs: 800,
          jitterRatio: 0,
        },
      },
      env: {
        ...runtimeBehaviour('crash-cadence'),
        TEST_BROKEN: broken,
        TEST_LIFE_MS: String(1.1 * stableAfterMs),
      },
    });

    await cluster.event('worker-restarting', (line) => line['degraded'] === true, 30_000);

    expect(cluster.all('worker-restarting').map(({ slot, delayMs }) => [slot, delayMs])).toEqual([
      [1, 0],
      [1, 0],
      [1, 800],
    ]);
    const degraded = async () => {
      const report = await clusterReport(cluster.url);
      const page = new MetricsPage((await request(cluster.url, '/metrics')).body);
      return {
        degraded: report.degraded,
        bySlot: ['0', '1'].map((worker) => page.sum('nestjs_cluster_worker_degraded', { worker })),
      };
    };
    expect(await degraded()).toEqual({ degraded: 1, bySlot: [0, 1] });
    rmSync(broken);
    await eventually('the end of the loop', degraded, (now) => now.degraded === 0);
    expect((await degraded()).bySlot).toEqual([0, 0]);
    expect(cluster.workerPids).toHaveLength(2);
  });

  it('of all slots together is found out before any slot has one of its own (C7)', async () => {
    const workers = 4;
    const cluster = await ClusterProcess.start({
      program: BARE,
      options: { workers, restart: { maxFailures: 3, maxBackoffMs: 10_000, jitterRatio: 0 } },
    });

    for (let failure = 0; failure < 2 * workers; failure++) {
      const slot = failure % workers;
      await cluster.until('the worker', () => cluster.workerPids.length === workers);
      process.kill(cluster.workerPids[slot]!, 'SIGSEGV');
      await cluster.until('its end', () => cluster.all('worker-died').length > failure);
    }

    await cluster.until('the last', () => cluster.all('worker-restarting').length === 2 * workers);
    expect(cluster.all('worker-died').map(({ cause }) => cause)).toEqual(
      Array.from({ length: 2 * workers }, () => 'crash'),
    );
    expect(cluster.all('worker-restarting').map(({ slot, degraded }) => degraded && slot)).toEqual([
      ...Array.from({ length: 2 * workers - 1 }, () => false),
      workers - 1,
    ]);
    expect((await request(cluster.url, '/')).outcome).toBe('ok');
  });

  it('that somebody makes by killing workers is slowed down, and is none', async () => {
    const cluster = await ClusterProcess.start({
      program: BARE,
      options: { workers: 1, restart: { backoffMs: 10, jitterRatio: 0 } },
    });

    for (let kills = 1; kills <= 26; kills++) {
      await cluster.until('a worker', () => cluster.all('worker-ready').length === kills);
      process.kill(cluster.workerPids[0]!, 'SIGKILL');
      await cluster.until('its restart', () => cluster.all('worker-restarting').length === kills);
    }

    const restarts = cluster.all('worker-restarting');
    expect(restarts.map(({ delayMs }) => delayMs)).toEqual([
      ...Array.from({ length: 20 }, () => 10),
      20,
      40,
      80,
      160,
      320,
      640,
    ]);
    expect(restarts.every(({ degraded }) => degraded === false)).toBe(true);
    expect((await request(cluster.url, '/')).outcome).toBe('ok');
  });
});

describe('a worker that cannot be started', () => {
  it('for want of descriptors is tried again until there are some, and the others serve', async () => {
    const cluster = await ClusterProcess.start({
      options: { heartbeat: { intervalMs: 100 }, restart: { maxBackoffMs: 300 } },
    });
    const [victim, other] = cluster.workerPids as [number, number];
    const before = openDescriptorsOf(cluster.pid);
    // No new descriptor has a number below it.
    limitDescriptors(cluster.pid, '3:');

    process.kill(victim, 'SIGKILL');

    await cluster.until('three tries', () => cluster.all('worker-died').length > 3);
    for (const line of cluster.all('worker-died').slice(1)) {
      expect(line).toMatchObject({ worker: 0, cause: 'boot' });
      expect(line.message).toContain('it could not be started');
      expect(line['error']).toMatchObject({ message: expect.stringContaining('EMFILE') as string });
    }
    expect((await getJson(cluster.url, '/whoami')).body.pid).toBe(other);
    limitDescriptors(cluster.pid, '20000:');
    const ready = await replacementOf(cluster, 0, victim);
    await cluster.until('both', () => cluster.workerPids.length === 2);
    expect(cluster.workerPids).toEqual([ready.pid, other]);
    expect(new Set(childrenOf(cluster.pid))).toEqual(new Set(cluster.workerPids));
    expect(openDescriptorsOf(cluster.pid)).toBe(before);
    const { ready: readyNow } = await eventually(
      'both ready',
      () => clusterReport(cluster.url),
      (report) => report.ready === 2,
    );
    expect(readyNow).toBe(2);
  });

  it('is no crash loop, even where it is the only one', async () => {
    const cluster = await ClusterProcess.start({
      program: BARE,
      options: {
        workers: 1,
        restart: { backoffMs: 10, maxBackoffMs: 50, maxFailures: 3, jitterRatio: 0 },
      },
    });
    limitDescriptors(cluster.pid, '3:');

    process.kill(cluster.workerPids[0]!, 'SIGKILL');

    await cluster.until('ten tries', () => cluster.all('worker-died').length > 10);
    expect(cluster.all('failed')).toEqual([]);
    expect(cluster.all('worker-restarting').filter(({ degraded }) => degraded)).toEqual([]);
    limitDescriptors(cluster.pid, '20000:');
    await cluster.until('another', () => cluster.workerPids.length === 1);
    expect((await request(cluster.url, '/')).outcome).toBe('ok');
  });

  it('for want of the working directory is tried again until it is there', async () => {
    const cwd = temporaryDirectory();
    const cluster = await ClusterProcess.start({
      options: { restart: { maxBackoffMs: 300 } },
      cwd,
    });
    const [victim, other] = cluster.workerPids as [number, number];
    rmdirSync(cwd);

    process.kill(victim, 'SIGKILL');

    await cluster.until('three tries', () => cluster.all('worker-died').length > 3);
    for (const line of cluster.all('worker-died').slice(1)) {
      expect(line).toMatchObject({ worker: 0, cause: 'boot' });
      expect(line.message).toContain(`the working directory ${cwd} is not there`);
    }
    expect((await getJson(cluster.url, '/whoami')).body.pid).toBe(other);
    expect(cluster.all('failed')).toEqual([]);
    mkdirSync(cwd);
    const ready = await replacementOf(cluster, 0, victim);
    expect(cluster.workerPids).toEqual([ready.pid, other]);
  });
});

describe('a primary that is gone', () => {
  it('leaves no worker and no held port behind when it is killed under load (C11)', async () => {
    const cluster = await ClusterProcess.start();
    expect(cluster.survivors()).toHaveLength(3);
    const load = new Load(cluster.url, '/wait/5', { clients: 4 });
    const keptAlive = new Load(cluster.url, '/wait/5', { clients: 4, keepAlive: true });
    await Promise.all([load.served(20), keptAlive.served(20)]);

    cluster.kill('SIGKILL');

    await cluster.exit;
    await Promise.all([cluster.gone(3_000), load.stop(), keptAlive.stop()]);
    const successor = net.createServer().listen(Number(new URL(cluster.url).port), '127.0.0.1');
    await once(successor, 'listening');
    successor.close();
  });

  it('leaves no worker behind when it dies of an error of its own (C13)', async () => {
    const cluster = new ClusterProcess({ env: runtimeBehaviour('primary-throws') });

    const { code } = await cluster.exited();

    expect(code).toBe(1);
    expect(cluster.output).toContain('Error: thrown in the primary');
    await cluster.gone(3_000);
  });
});
