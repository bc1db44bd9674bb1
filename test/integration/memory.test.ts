import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type LogLine, stopAll } from '../support/cluster-process.js';
import { clusterReport } from '../support/health.js';
import { getJson, Load, request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { ControlGroup } from '../support/control-group.js';
import { residentBytesOf } from '../support/processes.js';
import { endedReplacements, expectOneSlotAtATime } from '../support/replacements.js';
import { scrape } from '../support/scrape.js';

afterEach(stopAll);

const MB = 1_000_000;
const MIB = 1_048_576;

/** More than a worker of the fixture ever has by itself. */
const LIMIT_BYTES = 260 * MB;

const NO_FAILURES = { 'bad-status': 0, reset: 0, refused: 0, timeout: 0 };

async function restartsBy(cluster: ClusterProcess, cause: string): Promise<number> {
  const page = await scrape(cluster.url);
  return page.sum('nestjs_cluster_worker_restarts_total', { cause });
}

async function replacementReady(cluster: ClusterProcess, died: LogLine): Promise<LogLine> {
  const at = cluster.lines.indexOf(died);
  return cluster.event(
    'worker-ready',
    (line) => line.worker === died.worker && cluster.lines.indexOf(line) > at,
  );
}

describe('the soft memory limit', () => {
  it('replaces workers that cross it together one after the other, and leaking ones again and again, and loses no request', async () => {
    const workers = 2;
    const cluster = await ClusterProcess.start({
      options: { workers, memory: { softLimitBytes: LIMIT_BYTES } },
      env: behaviour('memory-routes'),
    });
    const before = cluster.workerPids;
    const agents = [];
    for (const pid of before) agents.push(await agentOf(cluster.url, pid));
    const load = new Load(cluster.url, '/hello', { clients: 2, pauseMs: 20 });

    const grown = await Promise.all(
      agents.map((agent) => request(cluster.url, '/grow/250', { agent })),
    );

    expect(grown.map(({ outcome }) => outcome)).toEqual(['ok', 'ok']);
    await cluster.until(
      'both replacements',
      () => endedReplacements(cluster).length === workers,
      60_000,
    );
    expect(await load.stop()).toMatchObject(NO_FAILURES);
    expect(cluster.all('worker-replacing').map(({ pid }) => pid)).toEqual(
      expect.arrayContaining(before),
    );
    expect(cluster.workerPids).toHaveLength(workers);
    for (const pid of before) expect(cluster.workerPids).not.toContain(pid);
    expect(
      (await clusterReport(cluster.url)).workers.map(({ lastExit }) => lastExit?.cause),
    ).toEqual(['memory', 'memory']);
    expect(await restartsBy(cluster, 'memory')).toBe(workers);

    // Far more than 20 MB a second: 4 clients × up to 50 requests a second × 600 kB.
    const leak = new Load(cluster.url, '/leak/600', { clients: 3 });
    const keptAlive = new Load(cluster.url, '/leak/600', { clients: 1, keepAlive: true });
    const again = () => endedReplacements(cluster).slice(workers);
    await cluster.until(
      'each slot again',
      () => new Set(again().map(({ worker }) => worker)).size === workers,
      60_000,
    );

    expect(await restartsBy(cluster, 'memory')).toBeGreaterThanOrEqual(2 * workers);
    expect(await leak.stop()).toMatchObject(NO_FAILURES);
    expect(await keptAlive.stop()).toMatchObject(NO_FAILURES);
    expect(cluster.all('worker-died')).toEqual([]);
    for (const line of cluster.all('worker-replacing')) {
      expect(line['cause']).toBe('memory');
      expect(line['detail']).toMatch(/^\d+ MB of memory, soft limit 260 MB$/);
    }
    for (const line of cluster.all('worker-stopped')) {
      expect(line).toMatchObject({ cause: 'memory', abortedRequests: 0, problem: null });
    }
    expectOneSlotAtATime(cluster, workers);
  }, 120_000);
});

describe('the hard memory limit', () => {
  it('kills a worker above it from outside, and no other: one that allocates without end, and one that is stopped', async () => {
    const cluster = await ClusterProcess.start({
      options: { hangTimeoutMs: false, memory: { hardLimitBytes: LIMIT_BYTES } },
      env: behaviour('memory-routes'),
    });

    for (const [index, path] of ['/grow-for-ever', '/grow-and-stop/300'].entries()) {
      const pids = cluster.workerPids;
      const { outcome } = await request(cluster.url, path, { timeoutMs: 30_000 });

      expect(outcome).toBe('reset');
      const pid = Number([...cluster.output.matchAll(/^growing (\d+)$/gm)][index]![1]);
      const died = await cluster.event('worker-died', (line) => line.pid === pid);
      expect(died).toMatchObject({ level: 'error', pid, cause: 'memory' });
      expect(died['detail']).toMatch(
        /^it used \d+ MB of memory, above memory\.hardLimitBytes \(260 MB\), and was killed$/,
      );
      const ready = await replacementReady(cluster, died);
      expect(cluster.workerPids).toEqual(pids.map((each) => (each === pid ? ready.pid : each)));
      expect(cluster.all('worker-replacing')).toEqual([]);
      const { workers } = await clusterReport(cluster.url);
      expect(workers[died.worker!]!.lastExit).toMatchObject({ cause: 'memory', signal: 'SIGKILL' });
      expect(await restartsBy(cluster, 'memory')).toBe(index + 1);
    }
  });
});

describe('a worker that runs out of memory by itself', () => {
  it('in V8 is told from one that aborts: cause oom', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: behaviour('memory-routes'),
      execArgv: ['--max-old-space-size=64'],
    });
    const pids = cluster.workerPids;

    const { outcome } = await request(cluster.url, '/grow-heap-for-ever', { timeoutMs: 30_000 });

    expect(outcome).toBe('reset');
    const died = await cluster.event('worker-died');
    expect(died).toMatchObject({ cause: 'oom', error: null });
    expect(died['detail']).toContain('V8 ran out of memory');
    expect(cluster.output).toContain('JavaScript heap out of memory');
    const ready = await replacementReady(cluster, died);
    expect(cluster.workerPids).toEqual(pids.map((each) => (each === died.pid ? ready.pid : each)));
    expect((await clusterReport(cluster.url)).workers[died.worker!]!.lastExit).toMatchObject({
      cause: 'oom',
    });
    expect(await restartsBy(cluster, 'oom')).toBe(1);
  });
});

// These tests need the right to create a memory control group; test/unit has tests that do not.
const mayMakeGroups = await (async () => {
  const group = ControlGroup.ofMemory(64 * MIB);
  await group?.remove();
  return group !== undefined;
})();

if (mayMakeGroups) {
  describe('in a container that limits memory', () => {
    it('each worker gets its share of the limit as its heap, and one that the kernel kills is of cause oom: the primary survives', async () => {
      const limitBytes = 640 * MIB;
      const group = ControlGroup.ofMemory(limitBytes)!;
      onTestFinished(() => group.remove());
      const cluster = await ClusterProcess.start({
        // Its loop grows without a pause: on a machine that is busy it would be killed as hung before.
        options: { hangTimeoutMs: 60_000 },
        env: behaviour('memory-routes'),
        within: group.within,
      });

      const { limitBytes: heapBytes, execArgv } = (
        await getJson<{ limitBytes: number; execArgv: string[] }>(cluster.url, '/heap')
      ).body;

      // The heap size must not be in execArgv: threads and processes of the app would inherit it.
      expect(execArgv).toEqual([]);
      // Both workers full, and the primary, fit into the limit.
      expect(2 * heapBytes + residentBytesOf(cluster.pid)).toBeLessThan(limitBytes);
      expect(2 * heapBytes).toBeGreaterThan(limitBytes / 2);

      const { outcome } = await request(cluster.url, '/grow-for-ever', { timeoutMs: 30_000 });

      expect(outcome).toBe('reset');
      const died = await cluster.event('worker-died');
      expect(died).toMatchObject({ cause: 'oom' });
      expect(died['detail']).toContain('killed by SIGKILL');
      expect(died['detail']).toContain('its control group reached the memory limit');
      await replacementReady(cluster, died);
      expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
      // One that somebody kills after that is not taken for another.
      const [victim] = cluster.workerPids as [number];
      process.kill(victim, 'SIGKILL');
      expect(await cluster.event('worker-died', ({ pid }) => pid === victim)).toMatchObject({
        cause: 'killed',
      });
      await cluster.destroy();
    });
  });
}
