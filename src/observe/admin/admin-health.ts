import { describeCluster, judgeCluster } from '../exposition/cluster-report.js';
import type { ClusterSnapshot } from '../../contract/snapshot/index.js';

/** A health report in the format of @nestjs/terminus. The primary does not load that package. */
export interface HealthReport {
  readonly status: number;
  readonly report: object;
}

type Status = 'up' | 'degraded' | 'down';
type Details = Readonly<Record<string, { readonly status: Status }>>;

/** The state of the cluster as the primary sees it. `ready` leaves out the measurements of the primary. */
export function healthReport(snapshot: ClusterSnapshot, what: 'whole' | 'ready'): HealthReport {
  const { status, reason } = judgeCluster(snapshot, snapshot.minReady);
  const cluster = {
    ...describeCluster({ snapshot, ageMs: 0 }),
    ...(reason !== undefined && { reason }),
    status,
  };
  const { primary } = snapshot;
  return terminusReport({
    cluster,
    ...(what === 'whole' && primary !== null && { primary: { ...primary, status: 'up' } }),
  });
}

/** The report of `/health/live`. It is empty, because the answer itself shows that the primary runs. */
export const ALIVE: HealthReport = terminusReport({});

function terminusReport(details: Details): HealthReport {
  const entries = Object.entries(details);
  const down = entries.filter(([, { status }]) => status === 'down');
  const degraded = entries.some(([, { status }]) => status === 'degraded');
  const status = down.length > 0 ? 'error' : degraded ? 'degraded' : 'ok';
  return {
    status: down.length > 0 ? 503 : 200,
    report: {
      status,
      info: Object.fromEntries(entries.filter(([, each]) => each.status !== 'down')),
      error: Object.fromEntries(down),
      details,
    },
  };
}
