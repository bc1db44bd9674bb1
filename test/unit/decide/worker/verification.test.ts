import { beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeCluster } from '../../support/fake-cluster.js';
import type { FakeWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());

const READY_TIMEOUT_MS = 30_000;
const WRONG = { name: 'ClusterConfigurationError', message: 'a thread cannot import /a.js' };
const TIMED_OUT =
  'boot timed out: its threads had not loaded within 30000 ms (readyTimeoutMs) and it was killed';

/** Workers that have not come up yet. */
const start = (workers = 1) => new FakeCluster(workers, { hangTimeoutMs: false }, 'starting');

/** It is ready, but for its threads. */
const ready = (worker: FakeWorker) => worker.becomeReady({ url: 'http://0', verifiable: true });

const answer = (worker: FakeWorker, error: typeof WRONG | null = null) =>
  worker.say({ type: 'verified', error });

describe('the start of a cluster', () => {
  it('fails with what they cannot load', () => {
    const cluster = start(2);
    ready(cluster.newest(0));
    answer(cluster.newest(0), WRONG);
    expect(cluster.events('failed')).toMatchObject([{ message: WRONG.message, exitCode: 78 }]);
  });

  it('is given up in words that fit the log, which has told of workers that were ready', () => {
    const cluster = start();
    for (let attempt = 0; attempt < 2; attempt += 1) {
      ready(cluster.newest(0));
      cluster.newest(0).exit();
      vi.advanceTimersByTime(1_000);
    }
    expect(cluster.events('failed')).toMatchObject([
      { exitCode: 70, message: 'in 2 attempts, every worker ended before its threads had loaded' },
    ]);
  });

  it('takes no longer than a boot may', () => {
    const cluster = start();
    const worker = cluster.newest(0);
    ready(worker);
    vi.advanceTimersByTime(READY_TIMEOUT_MS - 1);
    expect(worker.signals).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(worker.signals).toEqual(['SIGKILL']);
    worker.exit({ signal: 'SIGKILL' });
    expect(cluster.events('worker-died')).toMatchObject([{ cause: 'boot', detail: TIMED_OUT }]);
  });
});

it('a reload fails with what its threads cannot load, and where they take too long', () => {
  const cluster = start();
  ready(cluster.newest(0));
  answer(cluster.newest(0));
  cluster.reload();
  ready(cluster.newest(0));
  answer(cluster.newest(0), WRONG);
  cluster.reload();
  ready(cluster.newest(0));
  vi.advanceTimersByTime(READY_TIMEOUT_MS);
  expect(cluster.events('reload-ended').map(({ reason }) => reason)).toEqual([
    `worker=0 gen=1: ClusterConfigurationError: ${WRONG.message}`,
    'worker=0 gen=2: boot timed out: its threads had not loaded within 30000 ms (readyTimeoutMs)',
  ]);
  expect(cluster.current(0)).toBe(cluster.forked[0]);
});
