import { expect, it } from 'vitest';
import { healthReport } from '../../../../src/observe/exposition/cluster-report.js';
import type { WorkerSnapshot } from '../../../../src/contract/snapshot/types.js';
import { PRIMARY } from '../../support/fake-cluster.js';
import { SNAPSHOT } from '../../support/fake-relay.js';
import { workerSnapshot } from '../../support/fake-worker.js';

// oxlint-disable-next-line typescript/no-explicit-any
type Body = any;

/** The report of the primary of two slots with these workers. */
function reportOf(workers: readonly Partial<WorkerSnapshot>[]) {
  const all = workers.map((about, slot) => workerSnapshot({ slot, pid: 100 + slot, ...about }));
  const { status, report } = healthReport({ ...SNAPSHOT, workers: all }, 'whole');
  return { ...(report as Record<'details' | 'info' | 'error', Body>), status, report };
}

const SILENT = { responsive: false };

it('the primary reports in the shape of terminus: what is up in info, and all in details', () => {
  const { status, details, report } = reportOf([{}, {}]);
  expect(status).toBe(200);
  expect(report).toEqual({ status: 'ok', info: details, error: {}, details });
  expect(Object.keys(details)).toEqual(['cluster', 'primary']);
  expect(details.cluster).toMatchObject({ desired: 2, ready: 2, status: 'up' });
  expect(details.primary).toEqual({ ...PRIMARY, status: 'up' });
});

it('what is down is in error, with 503', () => {
  const { status, info, error, details, report } = reportOf([SILENT, SILENT]);
  expect([status, report]).toMatchObject([503, { status: 'error' }]);
  expect(Object.keys(info)).toEqual(['primary']);
  expect(error).toEqual({ cluster: details.cluster });
});

it('a cluster that is degraded answers 200', () => {
  const { status, report } = reportOf([{}, SILENT]);
  expect([status, report]).toMatchObject([200, { status: 'degraded', error: {} }]);
});

it('a worker has the documented fields, and none that is added to the snapshot', () => {
  const [shown] = reportOf([{ secret: 'token' } as object]).details.cluster.workers;
  expect(Object.keys(shown)).not.toContain('secret');
  expect(shown).toMatchObject({ slot: 0, pid: 100, state: 'ready' });
});
