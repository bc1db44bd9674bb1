import type { WorkerSnapshot } from 'nestjs-cluster/bootstrap';
import type { ClusterStatus } from '../cluster.js';
import { sum } from '../sum.js';

/** The rate covers several samples, because workers report counts with heartbeats, not for each sample. */
const RATE_SAMPLES = 4;

/** The figures of all workers together. A figure that is not a number is unknown, and `null` in JSON. */
export function figuresOf({ cluster: { workers, ready }, primary }: ClusterStatus) {
  const of = (key: keyof WorkerSnapshot): readonly number[] =>
    workers.map((each) => each[key]).filter((value) => typeof value === 'number');
  const utilization = of('eventLoopUtilization');
  return {
    ready,
    inFlight: sum(of('requestsInFlight')),
    connections: sum(of('openConnections')),
    residentBytes: sum(of('residentMemoryBytes')),
    heapBytes: sum(of('heapUsedBytes')),
    delayWorstMs: Math.max(...of('eventLoopDelayP99Ms')),
    delayPrimaryMs: primary?.eventLoopDelayP99Ms,
    utilizationMean: sum(utilization) / utilization.length,
    utilizationWorst: Math.max(...utilization),
  };
}

/** Computes the requests per second over the last few samples. */
export class RequestRate {
  #samples: { readonly at: number; readonly bySlot: ReadonlyMap<number, number> }[] = [];

  /** @param at the time in seconds. @returns NaN for the first sample. */
  next(at: number, workers: readonly WorkerSnapshot[]): number {
    // A slot that is being replaced is listed twice, both times with the count of the slot.
    const bySlot = new Map(workers.map((each) => [each.slot, each.requestsTotal]));
    this.#samples = [...this.#samples, { at, bySlot }].slice(-RATE_SAMPLES);
    const [oldest] = this.#samples;
    // The counts of a new primary begin at 0.
    const more = [...bySlot].map(([slot, count]) =>
      Math.max(0, count - (oldest!.bySlot.get(slot) ?? count)),
    );
    return sum(more) / (at - oldest!.at);
  }
}
