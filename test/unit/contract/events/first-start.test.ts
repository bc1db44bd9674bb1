import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FirstStart, quietLog } from '../../../../src/contract/events/index.js';
import { died, LISTENING, type NamedEvent, stopped } from '../../support/cluster-events.js';

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
const stopping: NamedEvent = ['stopping', { reason: 'SIGTERM', workers: 2, force: 'drain' }];

describe('a first start', () => {
  const tell = (workers: number, ...events: NamedEvent[]) => {
    let now = 1_000;
    const start = new FirstStart(workers, () => now);
    now += 1_900;
    return events.map(([name, event]) => start.after(name, event as never));
  };

  it('is over once, when each slot has had a worker that is ready and the address is known', () => {
    const told = tell(3, ready(1, 700), listening, ready(0, 600), ready(2, 1_890), ready(2, 1));
    expect(told.map((event) => event !== undefined)).toEqual([false, false, false, true, false]);
    expect(told[3]).toEqual({
      ...ADDRESS,
      workers: 3,
      ready: 3,
      durationMs: 1_900,
      fastestMs: 600,
      slowestMs: 1_890,
    });
  });

  it('waits for the address where every worker was faster', () => {
    expect(tell(1, ready(0), listening)[1]).toMatchObject({ ready: 1 });
  });

  it('waits for a slot that is started again, and for none in a crash loop', () => {
    const told = tell(2, ready(0), listening, dies(1), restarting(1), dies(1), ready(1));
    expect(told.at(-1)).toMatchObject({ ready: 2, workers: 2 });
    const [, , , lost] = tell(2, ready(0), listening, dies(1), restarting(1, true));
    expect(lost).toMatchObject({ ready: 1, workers: 2 });
  });

  it('counts the slots that are wanted then', () => {
    const scaling = (to: number): NamedEvent => ['scaling', { from: 2, to, reason: 'SIGTTIN' }];
    expect(tell(2, ready(0), listening, scaling(1))[2]).toMatchObject({ ready: 1, workers: 1 });
    const told = tell(2, ready(0), scaling(3), listening, ready(1), ready(2));
    expect(told.filter(Boolean)).toMatchObject([{ ready: 3 }]);
    expect(told[4]).toBeDefined();
  });

  it('has no end where the cluster is asked to stop before', () => {
    expect(tell(2, ready(0), listening, stopping, ready(1)).every((each) => !each)).toBe(true);
  });
});

describe('the log without the lines that say the same', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  const times = { durationMs: 1, fastestMs: 1, slowestMs: 1 };
  const started: NamedEvent = ['started', { ...ADDRESS, ready: 3, ...times }];

  function log() {
    const lines: [string, unknown][] = [];
    const emit = quietLog((name, event) => void lines.push([name, event]));
    const tell = (...events: NamedEvent[]) => {
      const before = lines.length;
      for (const [name, event] of events) emit(name, event as never);
      return lines.slice(before).map(([name]) => name);
    };
    return { tell, lines };
  }

  it('has one of a start that all workers come up in', () => {
    expect(log().tell(ready(0), listening, ready(1), ready(2), started)).toEqual(['started']);
  });

  it('has the address at once where a worker fails, and says when that slot is ready', () => {
    const { tell } = log();
    expect(tell(ready(0), listening)).toEqual([]);
    expect(tell(dies(1), restarting(1))).toEqual(['worker-died', 'listening']);
    expect(tell(ready(2), ready(1), started)).toEqual(['worker-ready', 'started']);
    expect(log().tell(dies(1), ready(0), listening)).toEqual(['worker-died', 'listening']);
  });

  it('has the address soon where a worker takes long', () => {
    const { tell, lines } = log();
    tell(ready(0), listening);
    vi.advanceTimersByTime(5_000);
    expect(lines).toEqual([['listening', ADDRESS]]);
    expect(tell(ready(1), ready(2), started)).toEqual(['started']);
    vi.advanceTimersByTime(60_000);
    expect(lines).toHaveLength(2);
  });

  it('says of each later worker that it is ready', () => {
    const { tell } = log();
    tell(started);
    expect(tell(dies(0, 'crash'), restarting(0), ready(0))).toEqual([
      'worker-died',
      'worker-restarting',
      'worker-ready',
    ]);
  });

  it('has one for each attempt that fails, and one more for a crash loop', () => {
    const { tell } = log();
    tell(started);
    expect(tell(dies(0), restarting(0), dies(0), restarting(0))).toEqual([
      'worker-died',
      'worker-died',
    ]);
    expect(tell(restarting(0, true))).toEqual(['worker-restarting']);
    // A candidate that did not come up says nothing of the worker that serves.
    tell(dies(1), ['worker-failing', { worker: workerOf(1), error: null, requests: [] }]);
    expect(tell(restarting(1))).toEqual(['worker-restarting']);
  });

  it('has none of workers that are ended as the cluster gives up', () => {
    const { tell } = log();
    const failed: NamedEvent = ['failed', { message: 'x', exitCode: 70, error: null }];
    expect(tell(failed, draining(0, 'recycle'), stops(0))).toEqual(['failed']);
    expect(tell(stops(1, 'a hook failed'))).toEqual(['worker-stopped']);
  });

  it('has one for each slot of a reload, and one more where the old worker did not end well', () => {
    const { tell } = log();
    tell(started);
    expect(tell(ready(0, 600, 1), draining(0), stops(0))).toEqual(['worker-ready']);
    expect(tell(ready(1, 600, 1), draining(1), stops(1, 'a hook failed'))).toEqual([
      'worker-ready',
      'worker-stopped',
    ]);
    expect(tell(draining(0, 'recycle'))).toEqual(['worker-draining']);
  });

  it('has no address any more once the cluster is asked to stop', () => {
    const { tell, lines } = log();
    tell(listening, stopping);
    vi.advanceTimersByTime(60_000);
    expect(lines.map(([name]) => name)).toEqual(['stopping']);
  });
});
