import type { ClusterSnapshot } from '../../../src/contract/snapshot/types.js';
import { encodeMetrics } from '../../../src/contract/snapshot/metrics-body.js';
import { PRIMARY } from './fake-cluster.js';
import { counter } from './metric-json.js';

export const SNAPSHOT: ClusterSnapshot = {
  balancing: 'shared',
  ports: [],
  desired: 2,
  ready: 2,
  minReady: 1,
  generation: 0,
  degraded: 0,
  reloads: { completed: 0, aborted: 0, reverted: 0 },
  dismissed: [],
  workers: [],
  primary: PRIMARY,
};

/** A body that counts `n`. */
export const body = (n: number) => encodeMetrics([counter(n)]);
