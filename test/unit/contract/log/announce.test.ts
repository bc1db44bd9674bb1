import { beforeEach, expect, describe, it, vi } from 'vitest';
import { Announcer } from '../../../../src/contract/log/announce.js';
import { died, LISTENING, type NamedEvent, stopped } from '../../support/cluster-events.js';

beforeEach(() => void vi.useFakeTimers());

const ADDRESS = { ...LISTENING, workers: 3 };
const workerOf = (slot: number, generation = 0) => ({ slot, generation, pid: 100 + slot });
const ready = (slot: number, bootMs = 600, generation = 0): NamedEvent => [
  'worker-ready',
  { worker: workerOf(slot, generation), bootMs },
];
const listening: NamedEvent = ['listening', ADDRESS];
const restarting = (slot: number, degraded = false): NamedEvent => [
  'worker-restarting',
  { slot, delayMs: 100, failures: 1, degraded },
];
const dies = (slot: number, cause: 'boot' | 'crash' = 'boot'): NamedEvent => [
  'worker-died',
  died({ worker: workerOf(slot), cause }),
];
const stops = (slot: number, problem: string | null = null): NamedEvent => [
  'worker-stopped',
  stopped({ worker: workerOf(slot), problem }),
];
const draining = (slot: number, cause: 'reload' | 'recycle' = 'reload'): NamedEvent => [
  'worker-draining',
  { worker: workerOf(slot), cause },
];
const scaling = (to: number): NamedEvent => ['scaling', { from: 2, to, reason: 'SIGTTIN' }];
const stopping: NamedEvent = ['stopping', { reason: 'SIGTERM', workers: 2, force: 'drain' }];

function announcer(workers: number, quiet = true) {
  const [log, tell] = [vi.fn(), vi.fn()];
  const { emit } = new Announcer(workers, quiet, log, tell);
  vi.advanceTimersByTime(1_900);
  const since = (mock: typeof log, act: () => void): unknown[] => {
    const before = mock.mock.calls.length;
    act();
    return mock.mock.calls.slice(before).map(([name]) => name as unknown);
  };
  const all = (events: NamedEvent[]) => () => {
    for (const [name, event] of events) emit(name, event as never);
  };
  return {
    log,
    tell,
    /** The names of the events that are logged when these are emitted. */
    logged: (...events: NamedEvent[]) => since(log, all(events)),
    /** The names of the events that the listeners get. */
    told: (...events: NamedEvent[]) => since(tell, all(events)),
  };
}

/** An announcer after the first start. */
function started() {
  const cluster = announcer(2);
  cluster.logged(ready(0), listening, ready(1));
  return cluster;
}

describe('the event started', () => {
  const summaryOf = (workers: number, ...events: NamedEvent[]) => {
    const { tell, told } = announcer(workers);
    told(...events);
    return tell.mock.calls.flatMap(([name, event]) =>
      name === 'started' ? [event as object] : [],
    );
  };

  it('comes once, when each slot has had a ready worker and the address is known', () => {
    const { told, tell } = announcer(3);
    expect(told(ready(1, 700), listening, ready(0, 600))).not.toContain('started');
    expect(told(ready(2, 1_890))).toEqual(['worker-ready', 'started']);
    expect(tell.mock.lastCall![1]).toEqual({
      ...ADDRESS,
      ready: 3,
      durationMs: 1_900,
      fastestMs: 600,
      slowestMs: 1_890,
    });
    expect(told(ready(2, 1))).toEqual(['worker-ready']);
    expect(summaryOf(1, ready(0), listening)).toMatchObject([{ ready: 1 }]);
  });

  it('waits for a slot that restarts, but not for a slot in a crash loop', () => {
    const failing = [ready(0), listening, dies(1), restarting(1)];
    expect(summaryOf(2, ...failing)).toEqual([]);
    expect(summaryOf(2, ...failing, ready(1))).toMatchObject([{ ready: 2, workers: 2 }]);
    expect(summaryOf(2, ...failing, restarting(1, true))).toMatchObject([{ ready: 1, workers: 2 }]);
  });

  it('counts the slots that are wanted by then', () => {
    expect(summaryOf(2, ready(0), listening, scaling(1))).toMatchObject([{ ready: 1, workers: 1 }]);
    const wider = [ready(0), scaling(3), listening, ready(1)];
    expect(summaryOf(2, ...wider)).toEqual([]);
    expect(summaryOf(2, ...wider, ready(2))).toMatchObject([{ ready: 3 }]);
  });

  it('does not come if the cluster is asked to stop before', () => {
    expect(summaryOf(2, ready(0), listening, stopping, ready(1))).toEqual([]);
  });
});

it('tells listeners every event, and how each worker ended', () => {
  const { tell, told } = announcer(2);
  expect(told(ready(0), dies(0), restarting(0), stops(1, 'a hook failed'))).toEqual([
    'worker-ready',
    'worker-died',
    'worker-exit',
    'worker-restarting',
    'worker-stopped',
    'worker-exit',
  ]);
  const exits = tell.mock.calls.filter(([name]) => name === 'worker-exit');
  expect(exits.map(([, exit]) => exit as unknown)).toEqual([
    { worker: workerOf(0), cause: 'boot', failed: true, detail: 'exited with code 1' },
    { worker: workerOf(1), cause: 'reload', failed: false, detail: 'a hook failed' },
  ]);
});

it('logs every event if the log is not quiet', () => {
  const { logged } = announcer(2, false);
  expect(logged(ready(0), listening, ready(1))).toEqual([
    'worker-ready',
    'listening',
    'worker-ready',
    'started',
  ]);
  vi.advanceTimersByTime(60_000);
  expect(logged(draining(0))).toEqual(['worker-draining']);
});

describe('a quiet log', () => {
  it('has one line of a start without failures', () => {
    expect(announcer(3).logged(ready(0), listening, ready(1), ready(2))).toEqual(['started']);
  });

  it('has the address at once if a worker fails, and the recovery of its slot', () => {
    const { logged } = announcer(3);
    expect(logged(ready(0), listening)).toEqual([]);
    expect(logged(dies(1), restarting(1))).toEqual(['worker-died', 'listening']);
    expect(logged(ready(2), ready(1))).toEqual(['worker-ready', 'started']);
    expect(announcer(3).logged(dies(1), ready(0), listening)).toEqual(['worker-died', 'listening']);
  });

  it('has the address after 5 s if a worker takes long', () => {
    const { log, logged } = announcer(3);
    logged(ready(0), listening);
    vi.advanceTimersByTime(4_999);
    expect(log).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(log.mock.calls).toEqual([['listening', ADDRESS]]);
    expect(logged(ready(1), ready(2))).toEqual(['started']);
    vi.advanceTimersByTime(60_000);
    expect(log).toHaveBeenCalledTimes(2);
  });

  it('has no address once the cluster is asked to stop', () => {
    const { log, logged } = announcer(2);
    logged(listening, stopping);
    vi.advanceTimersByTime(60_000);
    expect(log.mock.calls.map(([name]) => name as unknown)).toEqual(['stopping']);
  });

  it('has each later worker that becomes ready', () => {
    expect(started().logged(dies(0, 'crash'), restarting(0), ready(0))).toEqual([
      'worker-died',
      'worker-restarting',
      'worker-ready',
    ]);
  });

  it('has one line for each failed attempt, and one more for a crash loop', () => {
    const { logged } = started();
    expect(logged(dies(0), restarting(0), dies(0), restarting(0))).toEqual([
      'worker-died',
      'worker-died',
    ]);
    expect(logged(restarting(0, true))).toEqual(['worker-restarting']);
    // A candidate that did not become ready says nothing about the worker that serves.
    logged(dies(1), ['worker-failing', { worker: workerOf(1), error: null, requests: [] }]);
    expect(logged(restarting(1))).toEqual(['worker-restarting']);
  });

  it('has no workers that end because the cluster gives up', () => {
    const { logged } = started();
    const failed: NamedEvent = ['failed', { message: 'x', exitCode: 70, error: null }];
    expect(logged(failed, draining(0, 'recycle'), stops(0))).toEqual(['failed']);
    expect(logged(stops(1, 'a hook failed'))).toEqual(['worker-stopped']);
  });

  it('has one line for each slot of a reload, and one more if the old worker ended with a problem', () => {
    const { logged } = started();
    expect(logged(ready(0, 600, 1), draining(0), stops(0))).toEqual(['worker-ready']);
    expect(logged(ready(1, 600, 1), draining(1), stops(1, 'a hook failed'))).toEqual([
      'worker-ready',
      'worker-stopped',
    ]);
    expect(logged(draining(0, 'recycle'))).toEqual(['worker-draining']);
  });
});
