import { eventually } from './eventually.js';
import { scrape } from './scrape.js';

const REQUESTS = 'nestjs_cluster_worker_requests_total';
const REBALANCED = 'nestjs_cluster_rebalanced_connections_total';

/** A worker's share is measured over the requests of this time: a few heartbeats. */
const WINDOW_MS = 1_000;

/** Below the fair share by this much is not balanced. */
const ENOUGH = 0.6;

/** The metrics of `/metrics` that show the balance. */
export class BalanceMetrics {
  constructor(private readonly url: string) {}

  /** Connections that were closed for the balance: by the worker of a slot, or by all. */
  async rebalanced(slot?: number): Promise<number> {
    const labels: Record<string, string> = slot === undefined ? {} : { worker: `${slot}` };
    return (await scrape(this.url)).sum(REBALANCED, labels);
  }

  async requests(slot: number): Promise<number> {
    return (await scrape(this.url)).sum(REQUESTS, { worker: `${slot}` });
  }

  /** Resolves once each of these slots serves its share. */
  async even(slots: readonly number[]): Promise<void> {
    const seen: { readonly at: number; readonly totals: readonly number[] }[] = [];
    await eventually(
      `each of the slots ${slots.join(', ')} serves its share`,
      async () => {
        const page = await scrape(this.url);
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
