import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CANARY_MS } from '../../../../src/decide/replace/replacement.js';
import type { ClusterOptions } from '../../../../src/contract/options/resolve.js';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());

const CHECK_TIMEOUT_MS = 2_000;
const CRASH = { code: 1 };

const start = (workers = 2, options: ClusterOptions = {}) =>
  new FakeCluster(workers, { hangTimeoutMs: false, memory: { softLimitBytes: 1e9 }, ...options });

/** A cluster whose reload has started the new worker of slot 0. */
function reloading(workers = 2, options: ClusterOptions = {}) {
  const cluster = start(workers, options);
  const old = cluster.current(0);
  const told = cluster.reload();
  return { cluster, old, told, candidate: cluster.newest(0) };
}

const restarted = (cluster: FakeCluster) =>
  cluster.events('worker-restarting').map(({ slot }) => slot);

it.each<[string, string, (cluster: FakeCluster) => void]>([
  ['at boot', 'exited with code 1', (cluster) => cluster.newest(0).exit(CRASH)],
  [
    'within its canary time',
    'exited with code 1',
    (cluster) => {
      cluster.newest(0).becomeReady();
      vi.advanceTimersByTime(CANARY_MS - 1);
      cluster.newest(0).exit(CRASH);
    },
  ],
  [
    'while its health is checked',
    'killed by SIGSEGV',
    (cluster) => cluster.reachCheck(0).exit({ signal: 'SIGSEGV' }),
  ],
  [
    'by its health check',
    'its health check failed: database: refused',
    (cluster) => cluster.reachCheck(0).answerCheck(false, 'database: refused'),
  ],
  [
    'by its health check, without saying why',
    'its health check failed: no reason given',
    (cluster) => cluster.reachCheck(0).answerCheck(false),
  ],
  [
    'by a health check that does not end',
    'its health check took longer than 2000 ms',
    (cluster) => {
      const candidate = cluster.reachCheck(0);
      vi.advanceTimersByTime(CHECK_TIMEOUT_MS - 1);
      expect(candidate.handle.state).toBe('ready');
      vi.advanceTimersByTime(1);
    },
  ],
  [
    'by leaving of its own accord',
    'it received a signal',
    (cluster) => {
      cluster.newest(0).becomeReady();
      cluster.newest(0).say({ type: 'leaving' });
      vi.advanceTimersByTime(100);
    },
  ],
])(
  'a candidate that fails %s leaves the old worker in its place, and the reason',
  async (_, why, fail) => {
    const { cluster, old, told, candidate } = reloading();
    fail(cluster);
    await cluster.settled();
    expect(told).toEqual([{ outcome: 'aborted', generation: 1, reason: `worker=0 gen=1: ${why}` }]);
    expect(cluster.current(0)).toBe(old);
    expect([old.handle.state, old.sent('drain'), old.signals]).toEqual(['ready', [], []]);
    expect(restarted(cluster)).toEqual([]);
    // A later verdict changes nothing.
    candidate.answerCheck(true);
    candidate.exit(CRASH);
    vi.advanceTimersByTime(60_000);
    expect(cluster.events('reload-ended')).toHaveLength(1);
    expect([cluster.current(0), cluster.forked.length]).toEqual([old, 3]);
    // Neither the new code nor the replacement has left anything behind.
    cluster.outgrow(0);
    expect(cluster.forks.at(-1)).toMatchObject({ slot: 0, generation: 0 });
  },
);

describe('a restart of one slot', () => {
  it('leaves the old worker and warns if the new one fails', async () => {
    const cluster = start();
    const answer = cluster.supervisor.restart(1, 'test');
    cluster.newest(1).exit(CRASH);
    const reason = 'exited with code 1';
    expect(await answer).toEqual({ outcome: 'aborted', slot: 1, reason });
    const worker = cluster.current(1).handle.identity;
    const message = `was not replaced (cause=restart): ${reason}`;
    expect(cluster.events('warning')).toEqual([{ message, worker }]);
  });

  it('is refused if there is no such slot', async () => {
    const reason = 'slot 7 does not exist: the slots are 0, 1';
    const answer = await start().supervisor.restart(7, 'test');
    expect(answer).toEqual({ outcome: 'aborted', slot: 7, reason });
  });
});
