import type { WorkerSnapshot } from 'nestjs-cluster';
import { eventually } from './eventually.js';
import { getJson } from './http-client.js';

/** What an indicator of `/health` says of itself. */
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

/** What the cluster at `url` says of itself now: not what a worker knew of a primary that is late. */
export function clusterReport(url: string): Promise<ClusterReport> {
  return eventually(
    'a report of now',
    async () => (await getJson<HealthBody>(url, '/health')).body.details.cluster,
    ({ snapshotAgeMs }) => snapshotAgeMs === undefined,
  );
}
