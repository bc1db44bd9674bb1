import type { ClusterStatus } from '../cluster.js';
import { changesBetween, type LogEntry } from './changes-between.js';
import type { Readings } from './metrics-source.js';
import { RequestRate } from './request-rate.js';

/** Maximum number of rows that are kept: 15 minutes, with a sample every second. */
export const MAX_ROWS = 900;
export const MAX_LOG = 300;

/** If no status came for longer than this, the charts show a gap. */
const GAP_SECONDS = 5;

/** The names of a row's values, in order. */
export const COLUMNS = [
  'at',
  'requests',
  'inFlight',
  'connections',
  'ready',
  'residentBytes',
  'heapBytes',
  'delayWorstMs',
  'delayPrimaryMs',
  'utilizationMean',
  'utilizationWorst',
  'p50Ms',
  'p95Ms',
  'p99Ms',
  'queued',
  'offloaded',
] as const;

export type Row = readonly (number | null)[];

export type Figures = Pick<ClusterStatus, 'cluster' | 'primary'>;

/** The figures and the log of the last 15 minutes, for pages that are opened or reloaded. */
export class History {
  readonly rows: Row[] = [];
  readonly log: LogEntry[] = [];
  readonly #rate = new RequestRate();
  #lastAt = -Infinity;

  constructor(private readonly now: () => number = Date.now) {}

  /** Adds the figures of a status, with the latest readings of the metrics. */
  add({ cluster: { workers, ready }, primary }: Figures, readings: Readings): Row {
    // Charts need ascending times, even if the clock was set back.
    const at = Math.max(Math.round(this.now()) / 1_000, this.#lastAt + 0.001);
    if (at - this.#lastAt > GAP_SECONDS && this.rows.length > 0) {
      this.#push([this.#lastAt + 0.001, ...COLUMNS.slice(1).map(() => null)]);
    }
    this.#lastAt = at;
    const of = <K extends keyof (typeof workers)[number]>(key: K) =>
      workers.map((each) => each[key]).filter((value) => typeof value === 'number');
    const utilization = of('eventLoopUtilization');
    const values: Record<(typeof COLUMNS)[number], number | null> = {
      at,
      requests: this.#rate.next(at, workers),
      inFlight: sum(of('requestsInFlight')),
      connections: sum(of('openConnections')),
      ready,
      residentBytes: sum(of('residentMemoryBytes')),
      heapBytes: sum(of('heapUsedBytes')),
      delayWorstMs: highest(of('eventLoopDelayP99Ms')),
      delayPrimaryMs: primary?.eventLoopDelayP99Ms ?? null,
      utilizationMean: utilization.length === 0 ? null : sum(utilization)! / utilization.length,
      utilizationWorst: highest(utilization),
      p50Ms: readings.p50Ms,
      p95Ms: readings.p95Ms,
      p99Ms: readings.p99Ms,
      queued: readings.queued,
      offloaded: readings.offloaded,
    };
    const row = COLUMNS.map((name) => rounded(values[name]));
    this.#push(row);
    return row;
  }

  /** Adds to the log what happened between two reports. @returns the new entries. */
  addChanges(before: ClusterStatus | undefined, status: ClusterStatus): readonly LogEntry[] {
    const entries = changesBetween(before, status, new Date(this.now()).toISOString());
    this.log.push(...entries);
    this.log.splice(0, this.log.length - MAX_LOG);
    return entries;
  }

  /** Forgets the last totals. Called for a new primary, because its totals begin at 0. */
  restart(): void {
    this.#rate.reset();
  }

  #push(row: Row): void {
    this.rows.push(row);
    if (this.rows.length > MAX_ROWS) this.rows.shift();
  }
}

function sum(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((total, value) => total + value, 0);
}

function highest(values: readonly number[]): number | null {
  return values.length === 0 ? null : Math.max(...values);
}

/** Rounds to 3 digits after the point, to keep the JSON short. */
function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1_000) / 1_000;
}
