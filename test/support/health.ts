import type { WorkerSnapshot } from 'nestjs-cluster';
import { eventually } from './eventually.js';
import { getJson } from './http-client.js';

/** The entry of one indicator in the body of `/health`. */
export interface IndicatorReport {
  readonly status: 'up' | 'degraded' | 'down';
  readonly [key: string]: unknown;
}

/** The body of `/health`: the JSON of terminus. */
export interface HealthBody {
  readonly status: 'ok' | 'degraded' | 'error';
  readonly info: Readonly<Record<string, IndicatorReport>>;
  readonly error: Readonly<Record<string, IndicatorReport>>;
  readonly details: Readonly<Record<string, IndicatorReport>> & {
    readonly cluster: ClusterReport;
  };
}

export interface ClusterReport extends IndicatorReport {
  readonly desired: number;
  readonly ready: number;
  readonly generation: number;
  readonly degraded: number;
  readonly snapshotAgeMs?: number;
  readonly reason?: string;
  readonly workers: readonly WorkerSnapshot[];
}

/**
 * A fresh report of the cluster at `url`. If the primary is late, a worker answers with an older
 * report: then this asks again.
 */
export function clusterReport(url: string): Promise<ClusterReport> {
  return eventually(
    'a report of now',
    async () => (await getJson<HealthBody>(url, '/health')).body.details.cluster,
    ({ snapshotAgeMs }) => snapshotAgeMs === undefined,
  );
}
