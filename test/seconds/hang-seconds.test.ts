import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { PING_INTERVAL_MS } from '../../src/decide/worker/liveness.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { HANG_TIMEOUT_MS } from '../support/hang.js';
import { clusterReport } from '../support/health.js';
import { request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';

afterEach(stopAll);

const HOUR_MS = 3_600_000;

const JUMPING_CLOCK = pathToFileURL(
  join(import.meta.dirname, '../fixtures/preload/jumping-clock.mjs'),
).href;

/** Resolves once every worker has been up for `ms` more, by its primary's account. */
async function livesOn(cluster: ClusterProcess, ms: number): Promise<void> {
  const uptimes = async () => {
    const { workers } = await clusterReport(cluster.url);
    return workers.map(({ uptimeSeconds }) => uptimeSeconds ?? 0);
  };
  const before = await uptimes();
  await eventually(`every worker lives ${ms} ms more`, uptimes, (now) =>
    now.every((seconds, i) => seconds >= before[i]! + ms / 1_000),
  );
}

/** Stops a worker; resolves once it has not answered a ping. */
async function oweAnAnswer(cluster: ClusterProcess, slot: number): Promise<void> {
  process.kill(cluster.workerPids[slot]!, 'SIGSTOP');
  await eventually(
    'an answer that is owed',
    async () => (await clusterReport(cluster.url)).workers[slot]!.heartbeatAgeMs ?? 0,
    (ageMs) => ageMs > 1.5 * PING_INTERVAL_MS,
  );
}

function expectNobodyFailed(cluster: ClusterProcess, pids: readonly number[]): void {
  expect(cluster.all('worker-died')).toEqual([]);
  expect(cluster.all('worker-restarting')).toEqual([]);
  expect(cluster.workerPids).toEqual(pids);
}

describe('a worker that only seems to hang', () => {
  it('is not killed for a block, or a pause of the garbage collector, below hangTimeoutMs', async () => {
    const cluster = await ClusterProcess.start({
      options: { hangTimeoutMs: 3_000 },
      env: behaviour('crashes#hangs'),
    });
    const pids = cluster.workerPids as [number, number];
    const [blocked, collecting] = [
      await agentOf(cluster.url, pids[0]),
      await agentOf(cluster.url, pids[1]),
    ];

    const answers = await Promise.all([
      request(cluster.url, '/block/1800', { agent: blocked }),
      request(cluster.url, '/churn/1800', { agent: collecting }),
    ]);

    expect(answers.map(({ outcome }) => outcome)).toEqual(['ok', 'ok']);
    await livesOn(cluster, 1_500);
    expectNobodyFailed(cluster, pids);
  });

  it('is left alone while an inspector is open by NODE_OPTIONS', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, hangTimeoutMs: HANG_TIMEOUT_MS },
      env: { ...behaviour('crashes#hangs'), NODE_OPTIONS: '--inspect=127.0.0.1:0' },
    });
    const pids = cluster.workerPids;

    const { outcome } = await request(cluster.url, '/block/4500');

    expect(outcome).toBe('ok');
    await livesOn(cluster, 2 * PING_INTERVAL_MS);
    expectNobodyFailed(cluster, pids);
  });

  it('is left alone while an inspector is open that SIGUSR1 opened in it', async () => {
    const port = await freePorts(2);
    const cluster = await ClusterProcess.start({
      options: { workers: 1, hangTimeoutMs: HANG_TIMEOUT_MS },
      // node:cluster gives its first worker the next port.
      env: { ...behaviour('crashes#hangs'), NODE_OPTIONS: `--inspect-port=127.0.0.1:${port}` },
    });
    const pids = cluster.workerPids as [number];
    process.kill(pids[0], 'SIGUSR1');
    await cluster.until('the inspector', () => cluster.output.includes('Debugger listening on'));
    await livesOn(cluster, 3 * PING_INTERVAL_MS);

    expect((await request(cluster.url, '/block/4500')).outcome).toBe('ok');

    await livesOn(cluster, 2 * PING_INTERVAL_MS);
    expectNobodyFailed(cluster, pids);
  });

  it('because its primary was stopped, or its whole group, keeps its pid', async () => {
    const stopMs = 2 * HANG_TIMEOUT_MS;
    const options = { hangTimeoutMs: HANG_TIMEOUT_MS };
    const [primary, group] = await Promise.all([
      ClusterProcess.start({ options }),
      ClusterProcess.start({ options, within: ['setsid'] }),
    ]);
    const before = [primary.workerPids, group.workerPids];
    // At the moment of the stop one worker owes an answer, as when the machine is suspended.
    await Promise.all([primary, group].map((each) => oweAnAnswer(each, 0)));
    process.kill(primary.pid, 'SIGSTOP');
    process.kill(-group.pid, 'SIGSTOP');
    process.kill(before[0]![0]!, 'SIGCONT');
    await delay(stopMs);

    process.kill(primary.pid, 'SIGCONT');
    process.kill(-group.pid, 'SIGCONT');

    await Promise.all([primary, group].map((each) => livesOn(each, 2 * HANG_TIMEOUT_MS)));
    expectNobodyFailed(primary, before[0]!);
    expectNobodyFailed(group, before[1]!);
    for (const each of [primary, group]) {
      const late = each.all('warning').map(({ message }) => message);
      expect(late).toHaveLength(1);
      expect(late[0]).toMatch(/^the primary was late by \d\.\d s, more than 3500 ms .* stopped;/);
    }
    // It judges again after that.
    process.kill(primary.workerPids[0]!, 'SIGSTOP');
    expect(await primary.event('worker-died')).toMatchObject({ worker: 0, cause: 'hang' });
  });

  it('because the wall clock jumps by an hour is not killed, and waits no longer to restart', async () => {
    const cluster = await ClusterProcess.start({
      options: { hangTimeoutMs: HANG_TIMEOUT_MS },
      env: { TEST_CLOCK_JUMPS_MS: `${-HOUR_MS},${2 * HOUR_MS}` },
      execArgv: ['--import', JUMPING_CLOCK],
    });
    const pids = cluster.workerPids;
    const jumps = () => cluster.output.match(/^clock of \d+ is at /gm)?.length ?? 0;
    for (const times of [1, 2]) {
      const all = [cluster.pid, ...pids];
      for (const pid of all) process.kill(pid, 'SIGUSR2');
      await cluster.until('the jumps', () => jumps() === times * all.length);
      await livesOn(cluster, 1.5 * HANG_TIMEOUT_MS);
      expectNobodyFailed(cluster, pids);
    }

    process.kill(pids[0]!, 'SIGKILL');

    const { slot, delayMs } = await cluster.event('worker-restarting');
    expect(slot).toBe(0);
    expect(delayMs).toBeGreaterThanOrEqual(80);
    expect(delayMs).toBeLessThanOrEqual(120);
    await cluster.until('the replacement', () => cluster.all('worker-ready').length === 3);
  });
});
