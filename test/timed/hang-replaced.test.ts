import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { replacementOf, timeOf } from '../support/replacements.js';
import { type Block, hang } from '../support/hang.js';
import { clusterReport } from '../support/health.js';
import { RawClient } from '../support/raw-client.js';
import { scrape } from '../support/scrape.js';

afterEach(stopAll);

describe('a worker that hangs', () => {
  it('in an endless loop is replaced within 4.5 s, and the log names route and function', async () => {
    const cluster = await ClusterProcess.start({
      options: { hangTimeoutMs: 3_000 },
      env: behaviour('crashes#hangs'),
    });
    const client = await RawClient.open(cluster.url);
    const startedAt = Date.now();

    const pid = await hang(cluster, client, 'loop');

    expect(await client.end()).not.toBe('closed by this client');
    expect(client.text).toBe('');
    const died = await cluster.event('worker-died');
    const ready = await replacementOf(cluster, died.worker!, died.pid!);
    expect(timeOf(ready) - startedAt).toBeLessThan(4_500);
    // The watchdog counts a block from its last look at the event loop: up to 250 ms before.
    expect(timeOf(died) - startedAt).toBeGreaterThanOrEqual(2_750);

    expect(died).toMatchObject({ level: 'error', pid, cause: 'hang', error: null });
    expect(died['detail']).toContain('3000 ms (hangTimeoutMs)');
    expect(died.message).toContain('in flight: GET /hang/loop for ');
    expect(died.message).toContain('blocked loopForEver (');
    expect(died.message).toContain('crashes.mjs:');
    // A query may hold secrets.
    expect(JSON.stringify(died)).not.toContain('secret');
    const { forMs, requests, frames } = died['blocked'] as Block;
    expect(forMs).toBeGreaterThan(2_500);
    expect(requests).toEqual([
      { method: 'GET', path: '/hang/loop', forMs: expect.any(Number) as number },
    ]);
    expect(requests[0]!.forMs).toBeGreaterThan(2_500);
    expect(frames[0]).toMatch(/^loopForEver \(.*crashes\.mjs:\d+:\d+\)$/);
    expect(cluster.all('worker-died')).toHaveLength(1);

    const { workers } = await clusterReport(cluster.url);
    expect(workers[died.worker!]!.lastExit).toMatchObject({ cause: 'hang', signal: 'SIGKILL' });
    const page = await scrape(cluster.url);
    expect(page.sum('nestjs_cluster_worker_restarts_total', { cause: 'hang' })).toBe(1);
    expect(page.sum('nestjs_cluster_worker_restarts_total')).toBe(1);
  });
});
