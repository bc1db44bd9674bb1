import { describe, expect, it } from 'vitest';
import { ALIVE, healthReport } from '../../../../src/observe/exposition/cluster-report.js';
import type {
  ClusterSnapshot,
  WorkerExit,
  WorkerSnapshot,
} from '../../../../src/contract/snapshot/index.js';
import { PRIMARY } from '../../support/fake-cluster.js';
import { SNAPSHOT } from '../../support/fake-relay.js';
import { workerSnapshot } from '../../support/fake-worker.js';

const LAST_EXIT: WorkerExit = {
  cause: 'crash',
  code: 1,
  signal: null,
  at: '2026-01-01T00:00:00.000Z',
};

const worker = (slot: number, about: Partial<WorkerSnapshot> = {}): WorkerSnapshot =>
  workerSnapshot({ slot, pid: 100 + slot, lastExit: LAST_EXIT, ...about });

const cluster = (
  about: Partial<ClusterSnapshot> = {},
  workers = [worker(0), worker(1)],
): ClusterSnapshot => ({ ...SNAPSHOT, workers, ...about });

const SILENT = { responsive: false };

// oxlint-disable-next-line typescript/no-explicit-any
type Body = any;

const whole = (snapshot: ClusterSnapshot): Body => healthReport(snapshot, 'whole').report;

describe('the health report of the primary', () => {
  it('has the shape of terminus: what is up in info, and all in details', () => {
    const { status, report } = healthReport(cluster(), 'whole');
    const { details, ...rest } = report as Body;
    expect(status).toBe(200);
    expect(rest).toEqual({ status: 'ok', info: details, error: {} });
    expect(Object.keys(details)).toEqual(['cluster', 'primary']);
    expect(details.cluster).toMatchObject({ desired: 2, ready: 2, status: 'up' });
    expect(details.primary).toEqual({ ...PRIMARY, status: 'up' });
  });

  it('has what is down in error, and answers 503', () => {
    const silent = cluster({}, [worker(0, SILENT), worker(1, SILENT)]);
    const { status, report } = healthReport(silent, 'whole');
    const { info, error, details, status: said } = report as Body;
    expect([status, said]).toEqual([503, 'error']);
    expect(Object.keys(info)).toEqual(['primary']);
    expect(error).toEqual({ cluster: details.cluster });
    expect(details.cluster).toMatchObject({
      status: 'down',
      reason: '0 of 1 needed workers are ready and answer; 2 workers do not answer',
    });
  });

  it('is degraded, and answers 200, where enough workers are ready and another does not answer', () => {
    const { status, report } = healthReport(cluster({}, [worker(0), worker(1, SILENT)]), 'whole');
    expect([status, report]).toMatchObject([200, { status: 'degraded', error: {} }]);
  });

  it('has of a worker what is documented, and nothing that is added to the snapshot', () => {
    const added = { ...worker(0), secret: 'token' };
    const [shown] = whole(cluster({}, [added])).details.cluster.workers;
    expect(Object.keys(shown)).not.toContain('secret');
    expect(shown).toMatchObject({ slot: 0, pid: 100, state: 'ready', lastExit: LAST_EXIT });
  });

  it('says nothing of the primary to who asks for readiness alone', () => {
    const { report } = healthReport(cluster(), 'ready');
    expect(Object.keys((report as Body).details)).toEqual(['cluster']);
  });
});

describe('the report that the primary is alive', () => {
  it('has nothing but that', () => {
    expect(ALIVE).toEqual({
      status: 200,
      report: { status: 'ok', info: {}, error: {}, details: {} },
    });
  });
});
