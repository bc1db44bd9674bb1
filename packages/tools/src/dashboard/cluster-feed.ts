import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterStatus, ControlClient } from '../cluster.js';
import { changesBetween, type LogEntry } from './changes-between.js';
import { figuresOf, RequestRate } from './figures.js';
import { Metrics } from './metrics.js';

const POLL_MS = 1_000;
/** The metrics are read every 5 s, because a page of metrics costs more than a status. */
const POLLS_PER_METRICS = 5;

/** 15 minutes, with a row every second. */
export const MAX_ROWS = 900;
const MAX_LOG = 100;

/** The figures of a moment. A row without figures is a gap: the cluster did not answer. */
interface Row extends Partial<ReturnType<typeof figuresOf>> {
  /** Seconds since 1970. */
  readonly at: number;
}

export interface FeedSettings {
  readonly client: ControlClient;
  /** Finds the cluster again after it has been restarted. */
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
    // Ascending even if the clock is set back.
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
