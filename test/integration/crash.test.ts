import type http from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour, runtimeBehaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { expectRestarts, forkedAt, replacementOf, timeOf } from '../support/replacements.js';
import { holdPort } from '../support/free-ports.js';
import { getJson, Load, type Outcome, request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { describeOnce } from '../support/once.js';
import { isReaped } from '../support/processes.js';

afterEach(stopAll);

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

describeOnce('a worker that is killed', () => {
  it('takes only its requests in flight with it, and is replaced', async () => {
    // Nobody is moved away from the victim before it is killed.
    const cluster = await ClusterProcess.start({ options: { rebalance: false } });
    const [victim, survivor] = cluster.workerPids as [number, number];
    const pinned = new PinnedClients(cluster.url, [
      [victim, await agentOf(cluster.url, victim)],
      [victim, await agentOf(cluster.url, victim)],
      [survivor, await agentOf(cluster.url, survivor)],
      [survivor, await agentOf(cluster.url, survivor)],
    ]);
    const clients = 4;
    const load = new Load(cluster.url, '/hello', { clients });
    await load.serves(50);

    process.kill(victim, 'SIGKILL');

    const died = await cluster.event('worker-died');
    const ready = await replacementOf(cluster, died.worker!, victim);
    await load.serves(50);
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

  it('leaves the connections made while none is alive waiting, not refused', async () => {
    const cluster = await ClusterProcess.start();

    const killed = cluster.workerPids;
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    await cluster.until('the end of both', () => cluster.all('worker-died').length === 2);

    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const { outcome, body } = await request(cluster.url, '/whoami');
        return { outcome, body: body === '' ? undefined : (JSON.parse(body) as { pid: number }) };
      }),
    );
    // Replacements answered each of them.
    for (const { outcome, body } of answers) {
      expect(outcome).toBe('ok');
      expect(killed).not.toContain(body!.pid);
    }
  });
});

describe('a worker that ends by its own fault', () => {
  it.each([
    {
      fault: 'by process.exit(0)',
      path: '/faults/exit',
      cause: 'exit',
      detail: 'exited with code 0',
    },
    {
      fault: 'that closes its channel, and goes on sending,',
      path: '/faults/disconnect',
      cause: 'exit',
      detail: 'exited with code 0',
    },
  ])('$fault is replaced, and no other is', async ({ path, cause, detail }) => {
    const cluster = await ClusterProcess.start({ env: behaviour('crashes#faults') });
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

/** Each wait is twice the one before, up to 1 s, with its jitter of 20 %. */
function expectBackoff(delays: readonly number[]): void {
  for (const [index, delayMs] of delays.entries()) {
    const longest = Math.min(100 * 2 ** index, 1_000);
    expect(delayMs).toBeGreaterThanOrEqual(0.8 * longest);
    expect(delayMs).toBeLessThanOrEqual(Math.min(1.2 * longest, 1_000));
  }
}

describeOnce('a crash loop', () => {
  it('of one slot is slowed down and called degraded, while the others serve', async () => {
    const cluster = new ClusterProcess({
      env: { ...runtimeBehaviour('crashes#crashesWhenReady'), TEST_SLOTS: '1' },
    });
    await Promise.all([
      cluster.event('listening'),
      cluster.event('worker-ready', (line) => line.worker === 0),
    ]);
    const load = new Load(cluster.url, '/hello', { clients: 2, pauseMs: 20 });

    await cluster.event('worker-restarting', (line) => line['degraded'] === true);

    const restarts = cluster.all('worker-restarting');
    expect(restarts.map((line) => line['slot'])).toEqual([1, 1, 1, 1, 1]);
    const delays = restarts.map((line) => Number(line['delayMs']));
    expectBackoff(delays);
    expect(restarts.at(-1)).toMatchObject({ level: 'error' });
    // It waited as long as it said: each next worker was forked that much later.
    const failures = cluster.all('worker-failing');
    const births = cluster.all('worker-ready').filter((line) => line.worker === 1);
    expect(births).toHaveLength(5);
    for (const [index, delayMs] of delays.slice(0, 4).entries()) {
      // The clock that stamps lines is not the one that measures: some ms of slack.
      expect(forkedAt(births[index + 1]!) - timeOf(failures[index]!)).toBeGreaterThan(delayMs - 20);
    }
    const { body } = await getJson(cluster.url, '/health');
    expect(body.details.cluster).toMatchObject({ desired: 2, ready: 1, degraded: 1 });
    expect(cluster.all('worker-ready').filter((line) => line.worker === 0)).toHaveLength(1);
    await load.serves(10);
    expect(await load.stop()).toMatchObject({ refused: 0, timeout: 0, 'bad-status': 0 });
  });
});

describeOnce('a primary that is gone', () => {
  it('leaves no worker and no held port behind when it is killed under load', async () => {
    const cluster = await ClusterProcess.start();
    expect(cluster.survivors()).toHaveLength(3);
    const load = new Load(cluster.url, '/wait/5', { clients: 4 });
    const keptAlive = new Load(cluster.url, '/wait/5', { clients: 4, keepAlive: true });
    await Promise.all([load.serves(20), keptAlive.serves(20)]);

    cluster.kill('SIGKILL');

    await cluster.exit;
    // Within 3 s: seconds/deadlines.test.ts has that.
    await Promise.all([cluster.gone(), load.stop(), keptAlive.stop()]);
    (await holdPort(Number(new URL(cluster.url).port))).close();
  });

  it('leaves no worker behind when it dies of an error of its own', async () => {
    const cluster = new ClusterProcess({ env: runtimeBehaviour('crashes#primaryThrows') });

    const { code } = await cluster.exited();

    expect(code).toBe(1);
    expect(cluster.output).toContain('Error: thrown in the primary');
    await cluster.gone();
  });
});
