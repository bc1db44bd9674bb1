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

/** A cluster as the command line's client shows it. */
export class FakeControlClient {
  /** @param status the answer, or the error of a primary that does not answer. */
  constructor(public status: ClusterStatus | Error) {}

  async get<T>(): Promise<T> {
    if (this.status instanceof Error) throw this.status;
    return this.status as T;
  }
}
