import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeCluster } from '../../support/fake-cluster.js';
import type { FakeWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const READY_TIMEOUT_MS = 30_000;
const WRONG = { name: 'ClusterConfigurationError', message: 'a thread cannot import /a.js' };
const TIMED_OUT =
  'boot timed out: its threads had not loaded within 30000 ms (readyTimeoutMs) and it was killed';

/** Workers that have not come up yet; slot 0 first. */
function start(workers = 2) {
  const cluster = new FakeCluster(workers, { hangTimeoutMs: false }, 'starting');
  const served = vi.fn();
  void cluster.supervisor.serving.then(({ url }) => served(url));
  return { cluster, served, workers: cluster.forked as readonly FakeWorker[] };
}

/** A cluster with threads that has started. */
function started(workers = 1) {
  const { cluster, served } = start(workers);
  ready(cluster.forked[0]!);
  answer(cluster.forked[0]!);
  for (const worker of cluster.forked.slice(1)) ready(worker);
  return { cluster, served };
}

/** It has threads, and is ready but for them. */
function ready(worker: FakeWorker, verifiable = true): void {
  worker.becomeReady({ url: `http://${worker.handle.identity.slot}`, verifiable });
}

const answer = (worker: FakeWorker, error: typeof WRONG | null = null) =>
  worker.say({ type: 'verified', error });

/** How often each worker was asked. */
const asked = ({ forked }: FakeCluster) => forked.map((worker) => worker.sent('verify').length);

describe('the start of a cluster', () => {
  it('is over once one worker has found that its threads can do their work', async () => {
    const { cluster, served, workers } = start(3);
    const [second, first, third] = workers as [FakeWorker, FakeWorker, FakeWorker];
    ready(first);
    ready(second);
    answer(second); // was not asked
    await cluster.settled();
    expect([asked(cluster), served.mock.calls]).toEqual([[0, 1, 0], []]);
    answer(first);
    ready(third);
    await cluster.settled();
    expect(served.mock.calls).toEqual([['http://1']]);
    // One worker's result holds for all workers, also for those that become ready later.
    expect(asked(cluster)).toEqual([0, 1, 0]);
  });

  it('fails with what they cannot load', () => {
    const { cluster, workers } = start();
    ready(workers[0]!);
    answer(workers[0]!, WRONG);
    expect(cluster.events('failed')).toMatchObject([{ message: WRONG.message, exitCode: 78 }]);
  });

  it('is given up in words that fit the log, which has told of workers that were ready', () => {
    const { cluster } = start(1);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      ready(cluster.newest(0));
      cluster.newest(0).exit();
      vi.advanceTimersByTime(1_000);
    }
    expect(cluster.events('failed')).toMatchObject([
      { exitCode: 70, message: 'every worker ended before its threads had loaded, in 2 attempts' },
    ]);
  });

  it('takes no longer than a boot may', () => {
    const { cluster, workers } = start(1);
    ready(workers[0]!);
    vi.advanceTimersByTime(READY_TIMEOUT_MS - 1);
    expect(workers[0]!.signals).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(workers[0]!.signals).toEqual(['SIGKILL']);
    workers[0]!.exit({ signal: 'SIGKILL' });
    expect(cluster.events('worker-died')).toMatchObject([{ cause: 'boot', detail: TIMED_OUT }]);
  });
});

describe('a reload', () => {
  it('fails with what its threads cannot load, and where they take too long', () => {
    const { cluster } = started();
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
});
