import { setTimeout as delay } from 'node:timers/promises';
import type { WorkerSnapshot } from 'nestjs-cluster/bootstrap';
import type { ClusterStatus, ControlClient } from '../cluster.js';
import { sum } from '../sum.js';
import { Metrics } from './metrics.js';

const POLL_MS = 1_000;
/** Metrics are read every 5 s, because they cost more than a status. */
const POLLS_PER_METRICS = 5;

/** The rate covers several samples, because workers report their counts only with heartbeats. */
const RATE_SAMPLES = 4;

/** 15 minutes with one row per second. */
export const MAX_ROWS = 900;
const MAX_LOG = 100;

/** A line under "Events" on the page. */
interface LogEntry {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly level: 'info' | 'warn' | 'error';
  readonly text: string;
}

/** The values at one point in time; none if the cluster did not answer. */
interface Row extends Partial<ReturnType<typeof figuresOf>> {
  /** Seconds since 1970. */
  readonly at: number;
}

export interface FeedSettings {
  readonly client: ControlClient;
  /** Finds the cluster again after a restart. */
  readonly reconnect: () => Promise<ControlClient>;
  readonly readOnly: boolean;
  /** The URL of the metrics. Default: from the app's options. */
  readonly metricsUrl?: string | undefined;
}

/** Asks for the status of the cluster once a second, and keeps its history. */
export class ClusterFeed {
  readonly #rows: Row[] = [];
  readonly #log: LogEntry[] = [];
  readonly #rate = new RequestRate();
  readonly #metrics: Metrics;
  #status: ClusterStatus | undefined;
  /** Why the last status is missing. */
  #problem: string | null = null;
  client: ControlClient;

  constructor(private readonly settings: FeedSettings) {
    this.client = settings.client;
    this.#metrics = new Metrics(settings.metricsUrl);
  }

  /** Follows the cluster until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    for (let polls = 0; !signal.aborted; polls += 1) {
      await this.ask();
      if (polls % POLLS_PER_METRICS === 0 && this.#status !== undefined) {
        void this.#metrics.read(this.#status);
      }
      await delay(POLL_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** Asks for the status once. */
  async ask(): Promise<void> {
    // Never decreases, even if the system clock is set back.
    const at = (performance.timeOrigin + performance.now()) / 1_000;
    let row: Row = { at };
    try {
      if (this.#problem !== null) this.client = await this.settings.reconnect();
      const status = await this.client.status();
      const before = this.#status?.pid === status.pid ? this.#status : undefined;
      const requests = this.#rate.next(at, status.cluster.workers);
      row = { at, requests, ...figuresOf(status), ...this.#metrics.readings } as Row;
      this.#log.push(...changesBetween(before, status, new Date().toISOString()));
      this.#status = status;
      this.#problem = null;
    } catch (error) {
      this.#problem = (error as Error).message;
    }
    this.#rows.push(row);
    this.#rows.splice(0, this.#rows.length - MAX_ROWS);
    this.#log.splice(0, this.#log.length - MAX_LOG);
  }

  /** The cluster, its last events, and the rows after `since`. */
  state(since: number) {
    return {
      readOnly: this.settings.readOnly,
      status: this.#status,
      problem: this.#problem,
      metricsProblem: this.#metrics.problem,
      log: this.#log,
      rows: this.#rows.filter(({ at }) => at > since),
    };
  }
}

/** The values of all workers together. An unknown value is NaN, and `null` in JSON. */
function figuresOf({ cluster: { workers, ready }, primary }: ClusterStatus) {
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
    // A slot whose worker is being replaced is listed twice, with the same count.
    const bySlot = new Map(workers.map((each) => [each.slot, each.requestsTotal]));
    this.#samples = [...this.#samples, { at, bySlot }].slice(-RATE_SAMPLES);
    const [oldest] = this.#samples;
    // The counts of a new primary start at 0.
    const more = [...bySlot].map(([slot, count]) =>
      Math.max(0, count - (oldest!.bySlot.get(slot) ?? count)),
    );
    return sum(more) / (at - oldest!.at);
  }
}

/** Compares two reports from the same primary. Describes workers that started, changed state or ended. */
export function changesBetween(
  before: ClusterStatus | undefined,
  { cluster }: ClusterStatus,
  at: string,
): readonly LogEntry[] {
  if (before === undefined) return [];
  const entries: LogEntry[] = [];
  const old = new Map(before.cluster.workers.map((worker) => [worker.pid, worker]));
  const now = new Set(cluster.workers.map(({ pid }) => pid));
  for (const worker of before.cluster.workers) {
    if (worker.pid === null || now.has(worker.pid)) continue;
    const slot = cluster.workers.find((each) => each.slot === worker.slot);
    const cause = slot?.lastExit?.cause;
    const failed = slot !== undefined && slot.restarts > worker.restarts;
    const text = `${nameOf(worker)} ended${cause === undefined ? '' : ` (cause=${cause})`}`;
    entries.push({ at, level: failed ? 'error' : 'info', text });
  }
  for (const worker of cluster.workers) {
    if (worker.pid === null || old.get(worker.pid)?.state === worker.state) continue;
    entries.push({ at, level: 'info', text: `${nameOf(worker)} is ${worker.state}` });
  }
  const { status, reason = '' } = cluster;
  if (status !== before.cluster.status || reason !== (before.cluster.reason ?? '')) {
    const text = `the cluster is ${status}${reason && `: ${reason}`}`;
    entries.push({ at, level: status === 'up' ? 'info' : 'warn', text });
  }
  return entries;
}

function nameOf({ slot, generation, pid }: WorkerSnapshot): string {
  return `worker=${slot} gen=${generation} pid=${pid}`;
}
