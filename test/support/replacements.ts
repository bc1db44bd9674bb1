import { expect } from 'vitest';
import type { ClusterProcess, LogLine } from './cluster-process.js';
import { eventually } from './eventually.js';
import { childrenOf } from './processes.js';
import { scrape } from './scrape.js';

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

/** Replacements that are over: from the announcement to the end of the old worker. */
export function endedReplacements(cluster: ClusterProcess): LogLine[] {
  const stopped = new Set(cluster.all('worker-stopped').map(({ pid }) => pid));
  return cluster.all('worker-replacing').filter(({ pid }) => stopped.has(pid));
}

/**
 * Checks the order of events in the log. No replacement begins before the previous one is over. The
 * old worker drains only once a new worker of its slot is ready. There is at most one process more
 * than `workers`.
 */
export function expectOneSlotAtATime({ lines }: ClusterProcess, workers: number): void {
  let replacing: LogLine | undefined;
  let newIsReady = false;
  const serving = new Set<number>();
  for (const line of lines) {
    if (line.event === 'worker-replacing') {
      expect(replacing, `another is replaced while ${replacing?.message}`).toBeUndefined();
      replacing = line;
      newIsReady = false;
    } else if (line.event === 'worker-ready') {
      serving.add(line.pid!);
      if (line.worker === replacing?.worker) newIsReady = true;
    } else if (line.event === 'worker-draining' && line.pid === replacing?.pid) {
      expect(newIsReady, line.message).toBe(true);
    } else if (line.event === 'worker-stopped' || line.event === 'worker-died') {
      serving.delete(line.pid!);
      if (line.pid === replacing?.pid) replacing = undefined;
    }
    const starting = replacing !== undefined && !newIsReady ? 1 : 0;
    expect(serving.size + starting, line.message).toBeLessThanOrEqual(workers + 1);
  }
}

/** How the reload of a generation ended. */
export function ended(cluster: ClusterProcess, generation: number): Promise<LogLine> {
  return cluster.event('reload-ended', (line) => line['generation'] === generation);
}

/** A worker that becomes ready from now on. */
export function nextReady(
  cluster: ClusterProcess,
  matches: (line: LogLine) => boolean = () => true,
): Promise<LogLine> {
  const before = cluster.all('worker-ready');
  return cluster.event('worker-ready', (line) => !before.includes(line) && matches(line));
}

/** The workers there are, by slot, as `[slot, generation]`. */
export function generations(cluster: ClusterProcess): (readonly [number, number])[] {
  const pids = cluster.workerPids;
  return cluster
    .all('worker-ready')
    .filter(({ pid }) => pids.includes(pid!))
    .map(({ worker, gen }) => [worker!, gen!] as const)
    .sort(([a], [b]) => a - b);
}

export const ascending = (a: number, b: number): number => a - b;

/** Resolves once the primary has `count` workers, and no other process. */
export async function onlyLeft(cluster: ClusterProcess, count: number): Promise<void> {
  await eventually(
    `${count} workers and nothing else`,
    () => [childrenOf(cluster.pid), cluster.workerPids].map((pids) => pids.toSorted(ascending)),
    ([children, workers]) => workers!.length === count && children!.join() === workers!.join(),
  );
}
