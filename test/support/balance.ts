import { fallen, readCounters } from '../chaos/scraper.mjs';
import { eventually } from './eventually.js';
import { request } from './http-client.js';
import { MetricsPage } from './metrics-page.js';
import { hasPrimary } from './scrape.js';

const REQUESTS = 'nestjs_cluster_worker_requests_total';
const REBALANCED = 'nestjs_cluster_rebalanced_connections_total';

/** A worker's share is measured over the requests of this time: a few heartbeats. */
const WINDOW_MS = 1_000;

/** Below the fair share by this much is not balanced. */
const ENOUGH = 0.6;

/** The metrics of `/metrics` that show the balance. Also notes counters that fall. */
export class BalanceMetrics {
  /** Counters that were less than before, in words. */
  readonly fallen: string[] = [];
  #last = new Map<string, number>();

  constructor(
    /** Gives the text of `/metrics`, or nothing where it cannot be had just now. */
    private readonly scrape: () => Promise<string | undefined>,
  ) {}

  static of(url: string): BalanceMetrics {
    return new BalanceMetrics(async () => {
      const { outcome, body } = await request(url, '/metrics');
      return outcome === 'ok' ? body : undefined;
    });
  }

  async page(): Promise<MetricsPage> {
    const page = (await eventually(
      '/metrics',
      async () => {
        const text = await this.scrape();
        return text === undefined ? undefined : new MetricsPage(text);
      },
      (each) => each !== undefined && hasPrimary(each),
    ))!;
    const counters = new Map(
      [...readCounters(page.text)].filter(([series]) =>
        [REQUESTS, REBALANCED].includes(series.split('{')[0]!),
      ),
    );
    this.fallen.push(...fallen(this.#last, counters).map((fall) => JSON.stringify(fall)));
    this.#last = counters;
    return page;
  }

  /** Connections that were closed for the balance: by the worker of a slot, or by all. */
  async rebalanced(slot?: number): Promise<number> {
    const labels: Record<string, string> = slot === undefined ? {} : { worker: `${slot}` };
    return (await this.page()).sum(REBALANCED, labels);
  }

  async requests(slot: number): Promise<number> {
    return (await this.page()).sum(REQUESTS, { worker: `${slot}` });
  }

  /** Resolves once each of these slots serves its share. */
  async even(slots: readonly number[]): Promise<void> {
    const seen: { readonly at: number; readonly totals: readonly number[] }[] = [];
    await eventually(
      `each of the slots ${slots.join(', ')} serves its share`,
      async () => {
        const page = await this.page();
        const at = performance.now();
        const totals = slots.map((slot) => page.sum(REQUESTS, { worker: `${slot}` }));
        const from = seen.findLast((each) => each.at <= at - WINDOW_MS);
        seen.push({ at, totals });
        const counts = totals.map((total, index) => total - (from?.totals[index] ?? total));
        const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
        return counts.map((count) => count / mean);
      },
      (shares) => shares.every((share) => share >= ENOUGH),
    );
  }
}
