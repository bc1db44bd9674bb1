import type { ClusterProcess, LogLine } from './cluster-process.js';
import { eventually } from './eventually.js';
import { childrenOf } from './processes.js';

/** Far longer than any test waits. */
export const NEVER_MS = 600_000;

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
