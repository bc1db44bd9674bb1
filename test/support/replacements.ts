import { expect } from 'vitest';
import type { ClusterProcess, LogLine } from './cluster-process.js';

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
