import { expect } from 'vitest';
import { eventually } from './eventually.js';
import { request, type RequestOptions } from './http-client.js';
import { MetricsPage } from './metrics-page.js';

/** A snapshot that is younger than this was made for the scrape itself. */
const JUST_NOW_SECONDS = 0.5;

/** The page at `url` as it is, also where the primary or a worker was late with its part. */
export async function anyPage(url: string, options?: RequestOptions): Promise<MetricsPage> {
  const { status, body } = await request(url, '/metrics', options);
  expect([status, status === 200 ? '' : body]).toEqual([200, '']);
  return new MetricsPage(body);
}

/** Whether it has the part of the primary: a worker that has to do without leaves counters out. */
export function hasPrimary(page: MetricsPage): boolean {
  return page.sum('nestjs_cluster_snapshot_age_seconds') === 0;
}

/** Whether it also has what each worker counts now. */
export function isWhole(page: MetricsPage): boolean {
  return (
    hasPrimary(page) &&
    page.values('nestjs_cluster_worker_up').every((up) => up === 1) &&
    page
      .values('nestjs_cluster_worker_snapshot_age_seconds')
      .every((seconds) => seconds < JUST_NOW_SECONDS)
  );
}

/** The page at `url`; asked for again where the primary was late. */
export function scrape(url: string, options?: RequestOptions): Promise<MetricsPage> {
  return eventually('a page with the part of the primary', () => anyPage(url, options), hasPrimary);
}

/** The page at `url`; asked for again where the primary or a worker was late. */
export function scrapeAll(url: string): Promise<MetricsPage> {
  return eventually('a page with the parts of all workers', () => anyPage(url), isWhole);
}
