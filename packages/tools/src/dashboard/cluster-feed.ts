import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterStatus } from '../../control/cluster-status.js';
import type { ControlClient } from '../control/control-client.js';
import { COLUMNS, History } from './history.js';
import { MetricsSource, metricsUrlOf } from './metrics-source.js';
import { frame, Viewers } from './viewers.js';

const POLL_MS = 1_000;

export type Client = Pick<ControlClient, 'get' | 'post'>;

/** The state of the connection to the cluster. */
export interface Link {
  readonly state: 'connecting' | 'connected' | 'gone';
  /** The problem of the connection. `null` if there is none. */
  readonly message: string | null;
}

export interface FeedSettings {
  /** Finds the cluster, even if it has been restarted. */
  readonly connect: () => Promise<Client>;
  readonly readOnly: boolean;
  /** The URL of the metrics. `undefined`: from the app's options. `false`: read no metrics. */
  readonly metrics?: string | false | undefined;
  readonly pollMs?: number;
}

/** Asks for the status of the cluster once a second, and passes it on to all open pages. */
export class ClusterFeed {
  readonly viewers = new Viewers();
  readonly history = new History();
  readonly metrics = new MetricsSource(() => this.#metricsUrl());
  link: Link = { state: 'connecting', message: null };
  #client: Client | undefined;
  #status: ClusterStatus | undefined;
  #sample: object | undefined;

  constructor(private readonly settings: FeedSettings) {}

  /** The client of the cluster. `undefined` before the first connection. */
  get client(): Client | undefined {
    return this.#client;
  }

  /** Follows the cluster until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { connect, metrics, pollMs = POLL_MS } = this.settings;
    if (metrics !== false) void this.metrics.run(signal);
    let client: Client | undefined;
    while (!signal.aborted) {
      try {
        client ??= await connect();
        this.#take(client, await client.get<ClusterStatus>('/v1/status'));
      } catch (error) {
        client = undefined; // the cluster may have been restarted
        this.#setLink('gone', (error as Error).message);
      }
      await delay(pollMs, undefined, { signal }).catch(() => {});
    }
    this.viewers.end();
  }

  /** The first messages for a page: the cluster, its history and its current state. */
  introduction(): string {
    const { rows, log } = this.history;
    return [
      frame('hello', this.#hello()),
      frame('history', { columns: COLUMNS, rows, log }),
      frame('link', this.link),
      ...(this.#sample === undefined ? [] : [frame('sample', this.#sample)]),
    ].join('');
  }

  #take(client: Client, status: ClusterStatus): void {
    const before = this.#status;
    const isNew = status.pid !== before?.pid;
    this.#client = client;
    this.#status = status;
    if (isNew) {
      this.history.restart();
      this.viewers.tell(frame('hello', this.#hello()));
    }
    this.#setLink('connected', null);
    for (const entry of this.history.addChanges(isNew ? undefined : before, status)) {
      this.viewers.tell(frame('log', entry));
    }
    const row = this.history.add(status, this.metrics.readings);
    const { cluster, primary } = status;
    this.#sample = { row, cluster, primary };
    this.viewers.tell(frame('sample', { ...this.#sample, metrics: this.metrics.state }));
  }

  #hello() {
    const { name, pid, version, node, options } = this.#status ?? {};
    const { readOnly } = this.settings;
    return { readOnly, metrics: this.metrics.state, name, pid, version, node, options };
  }

  #metricsUrl(): string | undefined {
    const { metrics } = this.settings;
    if (typeof metrics === 'string') return metrics;
    return this.#status && metricsUrlOf(this.#status.options);
  }

  #setLink(state: Link['state'], message: string | null): void {
    if (state === this.link.state && message === this.link.message) return;
    this.link = { state, message };
    this.viewers.tell(frame('link', this.link));
  }
}
