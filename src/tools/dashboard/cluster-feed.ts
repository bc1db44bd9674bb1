import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterStatus } from '../../control/cluster-status.js';
import type { ControlClient } from '../control/control-client.js';
import { COLUMNS, History } from './history.js';
import { MetricsSource, metricsUrlOf } from './metrics-source.js';
import { frame, Viewers } from './viewers.js';

/** A primary sends a sample every second. After this long without a sample, in ms, the primary counts as silent. */
const SILENCE_MS = 3_000;
const RETRY_MS = 1_000;

export type Client = Pick<ControlClient, 'get' | 'post' | 'events'>;

/** The state of the connection to the cluster. A lost connection is opened again. */
export interface Link {
  readonly state: 'connecting' | 'connected' | 'silent' | 'gone';
  /** The problem of the connection. `null` if there is none. */
  readonly message: string | null;
}

export interface FeedSettings {
  /** Finds the cluster, even if it has been restarted. */
  readonly connect: () => Promise<Client>;
  readonly readOnly: boolean;
  /** The URL of the metrics. `undefined`: from the app's options. `false`: read no metrics. */
  readonly metrics?: string | false | undefined;
  readonly silenceMs?: number;
  readonly retryMs?: number;
}

/** Reads the control socket over one connection and passes everything on to all open pages. */
export class ClusterFeed {
  readonly viewers = new Viewers();
  readonly history = new History();
  readonly metrics = new MetricsSource(() => this.#metricsUrl());
  link: Link = { state: 'connecting', message: null };
  #client: Client | undefined;
  #status: Omit<ClusterStatus, 'cluster'> | undefined;
  #sample: unknown;

  constructor(private readonly settings: FeedSettings) {}

  /** The client of the cluster. `undefined` before the first connection. */
  get client(): Client | undefined {
    return this.#client;
  }

  /** Follows the cluster until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { connect, metrics, retryMs = RETRY_MS } = this.settings;
    if (metrics !== false) void this.metrics.run(signal);
    while (!signal.aborted) {
      try {
        await this.#follow(await connect(), signal);
        this.#setLink('gone', 'the cluster has ended');
      } catch (error) {
        this.#setLink('gone', (error as Error).message);
      }
      await delay(retryMs, undefined, { signal }).catch(() => {});
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

  async #follow(client: Client, signal: AbortSignal): Promise<void> {
    const status = await client.get<ClusterStatus>('/v1/status');
    const { cluster: _, ...fixed } = status;
    if (fixed.pid !== this.#status?.pid) this.history.restart();
    this.#client = client;
    this.#status = fixed;
    const stream = await client.events(signal);
    this.viewers.tell(frame('hello', this.#hello()));
    const silence = setTimeout(
      () => this.#setLink('silent', 'its primary is blocked or stopped'),
      this.settings.silenceMs ?? SILENCE_MS,
    );
    try {
      for await (const told of stream) {
        silence.refresh();
        this.#setLink('connected', null);
        if (told.type === 'log') {
          this.viewers.tell(frame('log', this.history.addEvent(told.data)));
          continue;
        }
        const row = this.history.add(told.data, this.metrics.readings);
        this.#sample = { row, cluster: told.data.cluster, primary: told.data.primary };
        const { state } = this.metrics;
        this.viewers.tell(frame('sample', { ...(this.#sample as object), metrics: state }));
      }
    } finally {
      clearTimeout(silence);
    }
  }

  #hello() {
    const { readOnly } = this.settings;
    return { readOnly, metrics: this.metrics.state, ...this.#status };
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
