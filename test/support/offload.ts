import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterModuleOptions } from 'nestjs-cluster';
import type { ClusterProcess } from './cluster-process.js';
import type { HealthBody, IndicatorReport } from './health.js';
import { getJson } from './http-client.js';
import type { MetricsPage } from './metrics-page.js';
import { scrape } from './scrape.js';
import { temporaryDirectory } from './temporary-directory.js';

const TASKS = 'nestjs_cluster_offload_tasks_total';

/** Options of `forRoot()`, as the fixtures take them. */
export function offloadOptions(
  offload: NonNullable<ClusterModuleOptions['offload']>,
): Record<string, string> {
  return { TEST_MODULE_OPTIONS: JSON.stringify({ offload }) };
}

/** Holds tasks and requests of the fixtures until they are let go, by name. */
export class Gates {
  readonly #directory: string;

  /** @param atEnd gets what removes them. Default: it is called when the test is finished. */
  constructor(atEnd?: (remove: () => void) => unknown) {
    this.#directory = temporaryDirectory(atEnd);
  }

  get env(): { readonly TEST_GATES: string } {
    return { TEST_GATES: this.#directory };
  }

  open(...names: string[]): void {
    for (const name of names) writeFileSync(join(this.#directory, name), '');
  }
}

/** Resolves once the program has written the line. */
export function wrote(cluster: ClusterProcess, line: string): Promise<void> {
  return cluster.until(`line '${line}'`, () => writtenTimes(cluster, line) > 0);
}

export function writtenTimes(cluster: ClusterProcess, line: string): number {
  return cluster.output.split('\n').filter((each) => each === line).length;
}

/** How a cluster's tasks ended so far. */
export class TaskCounts {
  constructor(readonly page: MetricsPage) {}

  static async of({ url }: Pick<ClusterProcess, 'url'>): Promise<TaskCounts> {
    return new TaskCounts(await scrape(url));
  }

  of(outcome: string, task?: string): number {
    return this.page.sum(TASKS, { outcome, ...(task !== undefined && { task }) });
  }

  get queueSize(): number {
    return this.page.sum('nestjs_cluster_offload_queue_size');
  }

  get threads(): number {
    return this.page.sum('nestjs_cluster_offload_threads');
  }
}

/** The entry in `/health` about the thread pool of the worker that answers. */
export async function offloadReport(url: string): Promise<IndicatorReport> {
  return (await getJson<HealthBody>(url, '/health')).body.details['offload']!;
}
