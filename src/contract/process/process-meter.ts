import { createHistogram, performance, PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import type { ProcessStats } from '../stats.js';

const NS_PER_MS = 1e6;
const US_PER_SECOND = 1e6;
const US_PER_MS = 1e3;
const BYTES_PER_KB = 1024;

/** Resolution of the event loop delay, in ms. The timer that measures it wakes up 50 times a second. */
const DELAY_RESOLUTION_MS = 20;

type Measured = Omit<ProcessStats, 'logLinesDroppedTotal'>;

/** Measures this process: memory, CPU, garbage collection, event loop. Never throws. */
export class ProcessMeter {
  /**
   * The event loop delay. Node's `monitorEventLoopDelay()` is not used: its `reset()` also forgets
   * when the timer last fired, so a block that begins before the timer fires again is missed. On a
   * busy event loop, each measurement runs between two blocks, so all would be missed.
   */
  readonly #delay = createHistogram();
  /** Incremented at each tick. If the watchdog's thread sees no increment, the event loop is blocked. */
  readonly beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  readonly #ticks = setInterval(() => {
    this.#delay.recordDelta();
    Atomics.add(this.beats, 0, 1);
  }, DELAY_RESOLUTION_MS).unref();
  readonly #collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) this.#gcMs += duration;
  });
  #residentMemoryBytes: number | undefined;
  #gcMs = 0;
  readonly #utilization = utilizationReader();
  #interval: Pick<ProcessStats, 'eventLoopUtilization' | 'eventLoopDelayP99Ms'> | undefined;

  constructor() {
    this.#delay.recordDelta();
    this.#collections.observe({ entryTypes: ['gc'] });
  }

  /** Ends the current interval. The utilization and the delay cover the time since the previous call. */
  measure(): Measured {
    const utilization = this.#utilization();
    const eventLoopDelayP99Ms = this.#delaySoFar();
    this.#delay.reset();
    this.#delay.recordDelta(); // after a reset, the first call only starts a period
    this.#interval = { eventLoopUtilization: round(utilization), eventLoopDelayP99Ms };
    return this.peek();
  }

  /** Begins a new interval. Drops the measurements of startup, which say nothing about serving requests. */
  restart(): void {
    this.measure();
    this.#interval = { eventLoopUtilization: 0, eventLoopDelayP99Ms: 0 };
  }

  /**
   * Current numbers if they are cheap to read, otherwise the numbers of the last interval. The delay
   * includes the current interval, so that a block of the event loop is visible as soon as it ends.
   */
  peek(): Measured {
    if (this.#interval === undefined) return this.measure();
    const { user, system } = process.cpuUsage();
    return {
      residentMemoryBytes: this.#resident(),
      heapUsedBytes: getHeapStatistics().used_heap_size,
      cpuSecondsTotal: (user + system) / US_PER_SECOND,
      eventLoopUtilization: this.#interval.eventLoopUtilization,
      eventLoopDelayP99Ms: Math.max(this.#interval.eventLoopDelayP99Ms, this.#delaySoFar()),
      gcSecondsTotal: Math.round(this.#gcMs * US_PER_MS) / US_PER_SECOND,
    };
  }

  /** Resident memory. If it cannot be read (hidden /proc, no free descriptor): the last known value, or the peak. */
  #resident(): number {
    try {
      this.#residentMemoryBytes = process.memoryUsage.rss();
    } catch {
      // the last known value stays
    }
    return this.#residentMemoryBytes ?? process.resourceUsage().maxRSS * BYTES_PER_KB;
  }

  /** The 99th percentile of the delay. Subtracts the timer's period, which the recorded times include. */
  #delaySoFar(): number {
    const p99Ms = this.#delay.count > 0 ? this.#delay.percentile(99) / NS_PER_MS : 0;
    return round(Math.max(0, p99Ms - DELAY_RESOLUTION_MS));
  }

  stop(): void {
    clearInterval(this.#ticks);
    this.#collections.disconnect();
  }
}

/** @returns a function that returns the event loop utilization since the previous call, 0..1. */
export function utilizationReader(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}

/** Resolves to `true` after an interval in which the event loop was busy for less than `share`, 0..1. */
export async function untilIdle(intervalMs: number, share: number, patienceMs: number) {
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    const utilization = utilizationReader();
    await delay(intervalMs, undefined, { ref: false });
    if (utilization() < share) return true;
  }
  return false;
}

/**
 * Collects startup garbage once, if this process is idle for 5 s in its first minute. V8 itself
 * would keep the garbage while the process is idle: 25 to 35 MB in a worker, 4 MB in a primary.
 */
export async function collectStartGarbage(): Promise<void> {
  if (!(await untilIdle(5_000, 0.05, 60_000))) return;
  // The pause grows with the heap: 70 ms for 40 MB, seconds for gigabytes.
  if (getHeapStatistics().used_heap_size > 200e6) return;
  try {
    const session = new (process.getBuiltinModule('node:inspector').Session)();
    session.connect();
    // Inside the callback, disconnect() waits for itself (Node 20 to 26).
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()));
  } catch {} // some builds of Node have no inspector
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
