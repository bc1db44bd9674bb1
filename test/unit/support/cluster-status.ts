import { clusterReport, type ClusterStatus } from '../../../src/control/cluster-status.js';
import { SNAPSHOT } from './fake-relay.js';

export const STATUS: ClusterStatus = {
  name: 'shop',
  pid: 4711,
  version: '1.0.0',
  node: '24.0.0',
  startedAt: '2026-01-01T00:00:00.000Z',
  options: { port: 0, host: null, admin: null },
  cluster: clusterReport(SNAPSHOT),
  primary: null,
};
