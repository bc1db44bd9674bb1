import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { getJson } from '../support/http-client.js';
import { nodeFor } from '../support/nodes.js';
import { scrapeAll } from '../support/scrape.js';

afterEach(stopAll);

const NEW_CLIENT = '@prometheus-io/client';
const OLD_CLIENT = 'prom-client';

/** Counts in every worker. @returns how often. */
async function countInBoth(url: string): Promise<number> {
  const slots = new Set<number>();
  let asked = 0;
  while (slots.size < 2) {
    slots.add((await getJson<{ slot: number }>(url, '/count')).body.slot);
    asked += 1;
  }
  return asked;
}

const PRELOAD = join(import.meta.dirname, '../fixtures/preload/packages.mjs');

describe.each([
  { installed: [NEW_CLIENT], without: OLD_CLIENT },
  { installed: [NEW_CLIENT, OLD_CLIENT], without: '' },
])('an app with $installed', ({ installed, without }) => {
  it("has the sums of its default registries' metrics on both pages, also of a worker that has ended", async (context) => {
    const cluster = await ClusterProcess.start({
      node: nodeFor(22, context),
      options: { workers: 2, admin: { port: 0 } },
      execArgv: ['--import', pathToFileURL(PRELOAD).href],
      env: {
        ...behaviour('metrics#ofEachClient'),
        TEST_CLIENTS: installed.join(','),
        WITH_PROMETHEUS_CLIENT: 'yes',
        WITHOUT: without,
      },
    });
    const asked = await countInBoth(cluster.url);
    await expectOnBothPages(cluster, asked);

    const [pid] = cluster.workerPids;
    process.kill(pid!, 'SIGTERM');
    await cluster.event('worker-stopped', (stopped) => stopped.pid === pid);
    await cluster.until('two workers again', () => cluster.workerPids.length === 2);
    await expectOnBothPages(cluster, asked);
  });

  async function expectOnBothPages(cluster: ClusterProcess, asked: number): Promise<void> {
    for (const url of [cluster.url, cluster.adminUrl]) {
      const page = await scrapeAll(url);
      for (const [i, help] of installed.entries()) {
        expect(page.text).toContain(`# HELP client_${i}_total ${help}\n`);
        expect(page.values(`client_${i}_total`)).toEqual([asked / 2]);
      }
      expect(page.sum('http_request_duration_seconds_count', { route: '/count' })).toBe(asked);
      expect(page.values('process_cpu_seconds_total')).toHaveLength(1);
      expect(page.values('nestjs_cluster_workers_desired')).toEqual([2]);
    }
    expect(cluster.all('warning')).toEqual([]);
  }
});
