import { join } from 'node:path';
import { expect } from 'vitest';
import type { ClusterProcess, LogLine } from './cluster-process.js';
import { scrape } from './scrape.js';

/** A program whose workers are ready within a moment. */
export const BARE = join(import.meta.dirname, '../fixtures/bare.mjs');

export const timeOf = (line: LogLine): number => Date.parse(String(line['time']));

/** When the worker that this line reports as ready was forked. */
export const forkedAt = (ready: LogLine): number => timeOf(ready) - Number(ready['bootMs']);

/** Resolves with the worker that takes the place of one that ended, or is about to. */
export function replacementOf(
  cluster: ClusterProcess,
  slot: number,
  pid: number,
): Promise<LogLine> {
  const ready = () => cluster.all('worker-ready').filter((line) => line.worker === slot);
  const own = ready().findIndex((line) => line.pid === pid);
  return cluster.event('worker-ready', (line) => ready().indexOf(line) > own);
}

/** The restarts that `/metrics` tells, by cause. */
export async function expectRestarts(
  cluster: ClusterProcess,
  causes: Readonly<Record<string, number>>,
): Promise<void> {
  const page = await scrape(cluster.url);
  const name = 'nestjs_cluster_worker_restarts_total';
  const counted = page
    .labelValues(name, 'cause')
    .map((cause) => [cause, page.sum(name, { cause })] as const)
    .filter(([, count]) => count > 0);
  expect(Object.fromEntries(counted)).toEqual(causes);
}
