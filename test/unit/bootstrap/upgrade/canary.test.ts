import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { passCanary } from '../../../../src/bootstrap/upgrade/canary.js';
import { EventListeners } from '../../../../src/contract/events/index.js';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const CANARY_MS = 1_000;

/** The trial of a new primary with two workers, and what became of it so far. */
function begin(state: 'starting' | 'ready' = 'ready') {
  const cluster = new FakeCluster(2, {}, state, false, true);
  const events = new EventListeners(() => {});
  const outcome = vi.fn();
  const options = { reload: { ...cluster.options.reload, canaryMs: CANARY_MS } };
  passCanary(cluster.supervisor, events, options).then(
    () => outcome('passed'),
    ({ message }: Error) => outcome(message),
  );
  const answer = (healthy: boolean, detail: string | null = null) => {
    for (const worker of cluster.forked) {
      const [check] = worker.sent('check');
      if (check) worker.say({ type: 'checked', id: check.id, healthy, detail });
    }
  };
  return { cluster, events, outcome, answer };
}

const worker = { slot: 1, generation: 0, pid: 7 };

describe('a new primary', () => {
  it('has passed once each worker has lived for a while and is healthy', async () => {
    const { cluster, outcome, answer } = begin('starting');
    cluster.forked[0]!.becomeReady();
    await vi.advanceTimersByTimeAsync(5 * CANARY_MS);
    answer(true);
    expect(outcome).not.toHaveBeenCalled();
    cluster.forked[1]!.becomeReady();
    await vi.advanceTimersByTimeAsync(CANARY_MS - 100);
    expect(cluster.forked[0]!.sent('check')).toEqual([]);
    await vi.advanceTimersByTimeAsync(300);
    expect(outcome).not.toHaveBeenCalled();
    answer(true);
    await vi.advanceTimersByTimeAsync(0);
    expect(outcome.mock.calls).toEqual([['passed']]);
  });

  it.each([
    { says: 'that it is not well', healthy: false, why: 'its health check failed: no database' },
    { says: 'nothing', healthy: undefined, why: 'its health check took longer than 2000 ms' },
  ])('fails if a worker says $says', async ({ healthy, why }) => {
    const { outcome, answer } = begin();
    await vi.advanceTimersByTimeAsync(CANARY_MS + 200);
    if (healthy !== undefined) answer(healthy, 'no database');
    await vi.advanceTimersByTimeAsync(2_000);
    expect(outcome.mock.calls).toEqual([[expect.stringContaining(why)]]);
  });

  it.each([
    [
      'worker-exit',
      { worker, cause: 'crash', failed: true, detail: 'exited with code 1' },
      'worker=1: exited with code 1',
    ],
    ['stopping', { reason: 'SIGTERM', workers: 2, force: 'drain' }, 'SIGTERM'],
    ['failed', { message: 'no such table', exitCode: 70, error: null }, 'no such table'],
  ] as const)('fails at the event %s', async (name, event, why) => {
    const { events, outcome } = begin();
    events.call(name, event as never);
    await vi.advanceTimersByTimeAsync(0);
    expect(outcome.mock.calls).toEqual([[why]]);
  });

  it('goes on if somebody kills a worker', async () => {
    const { events, outcome } = begin();
    events.call('worker-exit', { worker, cause: 'killed', failed: true, detail: 'SIGKILL' });
    await vi.advanceTimersByTimeAsync(0);
    expect(outcome).not.toHaveBeenCalled();
  });
});
