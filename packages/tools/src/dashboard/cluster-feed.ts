import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterStatus, ControlClient } from '../cluster.js';
import { COLUMNS, History } from './history.js';
import { MetricsSource, metricsUrlOf } from './metrics-source.js';
import { Refusal } from './guard.js';

const POLL_MS = 1_000;

/** Maximum number of pages that can be open at once. */
const MAX_PAGES = 16;

/** A page that has more unread bytes is dropped. It connects again and gets the history. */
const MAX_UNREAD_BYTES = 2 * 1024 * 1024;

/** The state of the connection to the cluster, with the problem if there is one. */
interface Link {
  readonly state: 'connecting' | 'connected' | 'gone';
  readonly message: string | null;
}

export interface FeedSettings {
  /** Finds the cluster, even if it has been restarted. */
  readonly connect: () => Promise<ControlClient>;
  readonly readOnly: boolean;
  /** The URL of the metrics. `undefined`: from the app's options. `false`: read no metrics. */
  readonly metrics?: string | false | undefined;
}

/** Asks for the status of the cluster once a second, and passes it on to all open pages. */
export class ClusterFeed {
  readonly #pages = new Set<ServerResponse>();
  readonly #history = new History();
  readonly #metrics = new MetricsSource(() => this.#metricsUrl);
  #link: Link = { state: 'connecting', message: null };
  #status: ClusterStatus | undefined;
  #sample: object | undefined;
  /** The client of the cluster. `undefined` before the first connection. */
  client: ControlClient | undefined;

  constructor(private readonly settings: FeedSettings) {}

  /** Follows the cluster until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { connect, metrics } = this.settings;
    if (metrics !== false) void this.#metrics.run(signal);
    let client: ControlClient | undefined;
    while (!signal.aborted) {
      try {
        client ??= await connect();
        this.#take(client, await client.status());
      } catch (error) {
        client = undefined; // the cluster may have been restarted
        this.#setLink('gone', (error as Error).message);
      }
      await delay(POLL_MS, undefined, { signal }).catch(() => {});
    }
    for (const page of this.#pages) page.destroy();
  }

  /** Sends the cluster, its history and from then on its state to a page. @throws Refusal */
  show(page: ServerResponse): void {
    if (this.#pages.size >= MAX_PAGES) {
      throw new Refusal(503, 'TOO_MANY_PAGES', `the dashboard is open ${MAX_PAGES} times`);
    }
    this.#pages.add(page);
    page.once('close', () => this.#pages.delete(page));
    const { rows, log } = this.#history;
    page.write(event('hello', this.#hello));
    page.write(event('history', { columns: COLUMNS, rows, log }));
    page.write(event('link', this.#link));
    if (this.#sample !== undefined) page.write(event('sample', this.#sample));
  }

  #tell(name: string, data: unknown): void {
    const text = event(name, data);
    for (const page of this.#pages) {
      if (page.writableLength > MAX_UNREAD_BYTES) page.destroy();
      else page.write(text);
    }
  }

  #take(client: ControlClient, status: ClusterStatus): void {
    const before = this.#status;
    const isNew = status.pid !== before?.pid;
    this.client = client;
    this.#status = status;
    if (isNew) {
      this.#history.restart();
      this.#tell('hello', this.#hello);
    }
    this.#setLink('connected', null);
    for (const entry of this.#history.addChanges(isNew ? undefined : before, status)) {
      this.#tell('log', entry);
    }
    const row = this.#history.add(status, this.#metrics.readings);
    const { cluster, primary } = status;
    this.#sample = { row, cluster, primary, metrics: this.#metrics.state };
    this.#tell('sample', this.#sample);
  }

  get #hello() {
    const { name, pid, version, node, options } = this.#status ?? {};
    const { readOnly } = this.settings;
    return { readOnly, metrics: this.#metrics.state, name, pid, version, node, options };
  }

  get #metricsUrl(): string | undefined {
    const { metrics } = this.settings;
    if (typeof metrics === 'string') return metrics;
    return this.#status && metricsUrlOf(this.#status.options);
  }

  #setLink(state: Link['state'], message: string | null): void {
    if (state === this.#link.state && message === this.#link.message) return;
    this.#link = { state, message };
    this.#tell('link', this.#link);
  }
}

function event(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
