import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, type LogLine, stopAll } from '../support/cluster-process.js';
import { clusterReport } from '../support/health.js';
import { Load } from '../support/http-client.js';
import { endedReplacements, expectOneSlotAtATime } from '../support/replacements.js';
import { scrape } from '../support/scrape.js';

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
      options: { recycle: { maxRequests } },
    });
    const fresh = new Load(cluster.url, '/wait/5', { clients: 3, pauseMs: 10 });
    const keptAlive = new Load(cluster.url, '/wait/5', {
      clients: 3,
      pauseMs: 10,
      keepAlive: true,
    });

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
});
