import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { request } from '../support/http-client.js';
import { scrape } from '../support/scrape.js';

afterEach(stopAll);

describe.each([
  ['express', 1],
  ['fastify', 1],
  ['express', 0],
])('a process at its limit, with %s and %d workers', (adapter, workers) => {
  it('answers critical routes, health and metrics, and refuses sheddable requests first', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers, limit: { maxRequests: 1, queueMs: 60_000 } },
      env: { ...behaviour('limited'), TEST_ADAPTER: adapter },
    });
    const ask = (path: string) => request(cluster.url, path);
    const running = ask('/hold');
    await cluster.until('a request that runs', () => cluster.output.includes('waits\n'));
    // Whichever comes first, the sheddable one has no place.
    const batch = ask('/batch');
    const askedAt = performance.now();
    const waiting = ask('/hello').then(({ status }) => ({ status, at: performance.now() }));
    expect((await batch).status).toBe(503);
    expect(JSON.parse((await batch).body)).toMatchObject({ statusCode: 503 });
    const [vital, health, page] = await Promise.all([
      ask('/vital/7'),
      ask('/health/live'),
      scrape(cluster.url),
    ]);
    expect([vital.status, vital.body, health.status]).toEqual([200, '7', 200]);
    expect(page.sum('nestjs_cluster_request_limit', { worker: '0' })).toBe(1);
    const shed = (priority: string) => page.sum('nestjs_cluster_requests_shed_total', { priority });
    expect([shed('sheddable'), shed('normal')]).toEqual([1, 0]);
    const [first, second] = await Promise.all([running, waiting]);
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.at - askedAt).toBeGreaterThan(2_000);
  });
});
