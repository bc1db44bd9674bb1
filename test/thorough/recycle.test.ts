import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type LogLine, stopAll } from '../support/cluster-process.js';
import { clusterReport } from '../support/health.js';
import { Load } from '../support/http-client.js';
import { endedReplacements, expectOneSlotAtATime } from '../support/replacements.js';
import { scrape } from '../support/scrape.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const NO_FAILURES = { 'bad-status': 0, reset: 0, refused: 0, timeout: 0 };

/** How many requests the replaced worker had served, and for how long, from the log line. */
function servedBy(line: LogLine): { requests: number; seconds: number } {
  const [, requests, seconds] = /^(\d+) requests in (\d+) s$/.exec(String(line['detail']))!;
  return { requests: Number(requests), seconds: Number(seconds) };
}

describe('recycling', () => {
  it('replaces workers after so many requests, one slot at a time, and loses none', async () => {
    const maxRequests = 200;
    const cluster = await ClusterProcess.start({
      options: { heartbeat: { intervalMs: 100 }, recycle: { maxRequests } },
    });
    const fresh = new Load(cluster.url, '/wait/5', { clients: 3 });
    const keptAlive = new Load(cluster.url, '/wait/5', { clients: 3, keepAlive: true });

    await cluster.until(
      'three replacements, in both slots',
      () => {
        const slots = endedReplacements(cluster).map(({ worker }) => worker);
        return slots.length >= 3 && new Set(slots).size === 2;
      },
      60_000,
    );

    expect(await fresh.stop()).toMatchObject(NO_FAILURES);
    expect(await keptAlive.stop()).toMatchObject(NO_FAILURES);
    expectOneSlotAtATime(cluster, 2);
    const replaced = cluster.all('worker-replacing');
    expect(new Set(replaced.map(({ worker }) => worker))).toEqual(new Set([0, 1]));
    for (const line of replaced) {
      expect(line).toMatchObject({ level: 'info', cause: 'recycle' });
      expect(servedBy(line).requests).toBeGreaterThanOrEqual(0.9 * maxRequests);
    }
    for (const line of cluster.all('worker-stopped')) {
      expect(line).toMatchObject({
        cause: 'recycle',
        destroyedConnections: 0,
        abortedRequests: 0,
        problem: null,
      });
    }
    // Recycling is not a failure: no restart is counted, and no slot is delayed.
    expect(cluster.all('worker-died')).toEqual([]);
    expect(cluster.all('worker-restarting')).toEqual([]);
    const page = await scrape(cluster.url);
    expect(page.sum('nestjs_cluster_worker_restarts_total')).toBe(0);
    const { workers, degraded } = await clusterReport(cluster.url);
    expect(degraded).toBe(0);
    expect(new Set(workers.map(({ lastExit }) => lastExit?.cause))).toEqual(new Set(['recycle']));
  });

  it('replaces workers that started together at their age, one slot at a time', async () => {
    const workers = 2;
    const cluster = await ClusterProcess.start({
      options: { workers, recycle: { maxAgeMs: 4_000 } },
    });
    const before = cluster.workerPids;
    const load = new Load(cluster.url, '/wait/5', { clients: 2 });

    await cluster.until(
      'that all are replaced',
      () => {
        const over = new Set(endedReplacements(cluster).map(({ pid }) => pid));
        return before.every((pid) => over.has(pid));
      },
      50_000,
    );

    expect(await load.stop()).toMatchObject(NO_FAILURES);
    expectOneSlotAtATime(cluster, workers);
    for (const line of cluster.all('worker-replacing')) {
      expect(line['cause']).toBe('recycle');
      // Rounded to a second.
      expect(servedBy(line).seconds).toBeGreaterThanOrEqual(2);
    }
    expect(cluster.all('worker-died')).toEqual([]);
  });

  it('never lets a worker go for one that does not come up, and tries again later', async () => {
    const broken = join(temporaryDirectory(), 'broken');
    const cluster = await ClusterProcess.start({
      options: {
        workers: 1,
        recycle: { maxAgeMs: 1_000 },
        restart: { maxBackoffMs: 1_200 },
      },
      env: { ...behaviour('crash-boot-while'), TEST_BROKEN: broken },
    });
    const [pid] = cluster.workerPids;
    const load = new Load(cluster.url, '/hello', { clients: 2, pauseMs: 4 });
    writeFileSync(broken, '');

    await cluster.until('two failed tries', () => cluster.all('warning').length >= 2);

    for (const { message } of cluster.all('warning')) {
      expect(message).toMatch(
        /is not replaced \(cause=recycle\), next try in 1200 ms: .*the build is broken/,
      );
    }
    expect(cluster.workerPids).toEqual([pid]);
    expect(cluster.all('worker-draining').filter((line) => line.pid === pid)).toEqual([]);
    rmSync(broken);
    await cluster.event('worker-stopped', (line) => line.pid === pid);
    await cluster.until('one worker', () => cluster.workerPids.length === 1);
    expect(await load.stop()).toMatchObject(NO_FAILURES);
    expect(cluster.all('worker-restarting')).toEqual([]);
  });
});
