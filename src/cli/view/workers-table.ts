import type { ClusterReport } from '../../control/cluster-status.js';
import { type Column, formatMegabytes, formatNumber, formatSeconds } from './table.js';

export type WorkerReport = ClusterReport['workers'][number];

/** A worker and its responses per second, computed from two reports. `null` if not known. */
export interface WorkerRow extends WorkerReport {
  readonly requestsPerSecond: number | null;
}

export const STATUS_COLUMNS: readonly Column<WorkerReport>[] = [
  { title: 'slot', value: ({ slot }) => String(slot) },
  { title: 'pid', value: ({ pid }) => formatNumber(pid) },
  { title: 'gen', value: ({ generation }) => String(generation) },
  { title: 'state', value: ({ state }) => state, left: true },
  { title: 'in flight', value: ({ requestsInFlight }) => formatNumber(requestsInFlight) },
  { title: 'conns', value: ({ openConnections }) => formatNumber(openConnections) },
  { title: 'loop', value: ({ eventLoopUtilization }) => formatNumber(eventLoopUtilization, 2) },
  { title: 'delay ms', value: ({ eventLoopDelayP99Ms }) => formatNumber(eventLoopDelayP99Ms) },
  { title: 'RSS MB', value: ({ residentMemoryBytes }) => formatMegabytes(residentMemoryBytes) },
  { title: 'heap MB', value: ({ heapUsedBytes }) => formatMegabytes(heapUsedBytes) },
  { title: 'up', value: ({ uptimeSeconds }) => formatSeconds(uptimeSeconds) },
  { title: 'restarts', value: ({ restarts }) => String(restarts) },
  { title: 'last exit', value: ({ lastExit }) => lastExit?.cause ?? '-', left: true },
];

export const TOP_COLUMNS: readonly Column<WorkerRow>[] = [
  ...STATUS_COLUMNS.slice(0, 4),
  { title: 'req/s', value: ({ requestsPerSecond }) => formatNumber(requestsPerSecond) },
  ...STATUS_COLUMNS.slice(4),
];

/** The state of the whole cluster, in one line. */
export function summarize(report: ClusterReport): string {
  const { status, ready, desired, generation, reason } = report;
  return `${status}, ${ready}/${desired} workers ready, generation ${generation}${reason === undefined ? '' : `: ${reason}`}`;
}

/** Adds to each worker the responses per second of its slot since the previous report. */
export function withRates(
  now: ClusterReport,
  before: ClusterReport | undefined,
  seconds: number,
): WorkerRow[] {
  const totals = new Map(before?.workers.map(({ slot, requestsTotal }) => [slot, requestsTotal]));
  const shown = new Set<number>();
  return now.workers.map((worker) => {
    const { slot, requestsTotal, state } = worker;
    const total = totals.get(slot);
    // The counter belongs to the slot. If the slot has two processes, only one row shows the rate.
    const isFirst = state === 'ready' && !shown.has(slot);
    if (isFirst) shown.add(slot);
    const rate = total === undefined || seconds <= 0 ? null : (requestsTotal - total) / seconds;
    return { ...worker, requestsPerSecond: isFirst && rate !== null ? Math.max(0, rate) : null };
  });
}
