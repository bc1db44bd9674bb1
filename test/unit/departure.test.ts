import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EmitEvent } from '../../src/events/index.js';
import {
  beginCollapse,
  beginDeparture,
  drainAfterAll,
  reportDeparture,
  reportFailure,
  reportLateError,
} from '../../src/primary/departure.js';
import type { ProcessExit } from '../../src/primary/policies/exit-cause.policy.js';
import { FakeWorker } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const SHUTDOWN = { lameDuckMs: 1_000, drainTimeoutMs: 10_000, killTimeoutMs: 2_000 };
const CLEAN = { code: 0, signal: null };
const KILLED = { code: null, signal: 'SIGKILL' } as const;

function depart(worker: FakeWorker, shutdown = SHUTDOWN) {
  const emit = vi.fn();
  beginDeparture(worker.handle, 'shutdown', shutdown, emit as EmitEvent);
  return emit;
}

/** The event that tells how a worker left; it is well where it has no problem. */
function reported(worker: FakeWorker, exit: typeof CLEAN | typeof KILLED): unknown {
  const emit = vi.fn();
  const well = reportDeparture(worker.handle, exit, emit as EmitEvent);
  expect(emit).toHaveBeenCalledOnce();
  expect(emit.mock.calls[0]![0]).toBe('worker-stopped');
  expect(emit.mock.calls[0]![1]).toHaveProperty('problem');
  expect(well).toBe((emit.mock.calls[0]![1] as { problem: unknown }).problem === null);
  return emit.mock.calls[0]![1];
}

describe('a worker that is asked to leave while it comes up', () => {
  it('is ended after a second where it does not become ready', () => {
    const worker = new FakeWorker({ state: 'starting' });
    depart(worker);
    vi.advanceTimersByTime(1_000);
    expect(worker.signals).toEqual(['SIGTERM', 'SIGKILL']);
  });

  it('drains like any other where it has become ready meanwhile: it serves', () => {
    const worker = new FakeWorker({ state: 'starting' });
    depart(worker);
    drainAfterAll(worker.handle, performance.now(), SHUTDOWN);
    expect(worker.sent('drain')).toMatchObject([{ cause: 'shutdown' }]);
    vi.advanceTimersByTime(13_400);
    expect(worker.signals).toEqual(['SIGTERM']);
    vi.advanceTimersByTime(100);
    expect(worker.signals).toEqual(['SIGTERM', 'SIGKILL']);
  });

  it('is told to drain once, however often it says that it is ready', () => {
    const worker = new FakeWorker({ state: 'starting' });
    depart(worker);
    for (let times = 0; times < 3; times += 1) {
      drainAfterAll(worker.handle, performance.now(), SHUTDOWN);
    }
    expect(worker.sent('drain')).toHaveLength(1);
  });
});

describe('a worker that is asked to leave', () => {
  it('is told to drain, once, and said to be draining', () => {
    const worker = new FakeWorker();
    const emit = depart(worker);
    expect(worker.sent('drain')).toMatchObject([{ cause: 'shutdown' }]);
    expect(worker.handle.state).toBe('draining');
    expect(emit.mock.calls).toEqual([
      ['worker-draining', { worker: worker.handle.identity, cause: 'shutdown' }],
    ]);
  });

  it('has all the time it was promised before it is killed', () => {
    const worker = new FakeWorker();
    depart(worker);
    vi.advanceTimersByTime(13_499);
    expect(worker.signals).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(worker.signals).toEqual(['SIGKILL']);
    expect(worker.handle.overdue).toBe(true);
  });

  it('is ended at once where it was only starting, and killed after a second', () => {
    const worker = new FakeWorker({ state: 'starting' });
    depart(worker);
    vi.advanceTimersByTime(999);
    expect(worker.signals).toEqual(['SIGTERM']);
    vi.advanceTimersByTime(1);
    expect(worker.signals).toEqual(['SIGTERM', 'SIGKILL']);
  });

  it('is not killed once it has left', () => {
    const worker = new FakeWorker();
    depart(worker);
    worker.handle.enter('exited');
    vi.advanceTimersByTime(60_000);
    expect(worker.signals).toEqual([]);
  });

  it.each(['lameDuckMs', 'drainTimeoutMs', 'killTimeoutMs'])(
    'is not killed at once where its %s is the longest there is: the sum overflows a timer',
    (key) => {
      const worker = new FakeWorker();
      depart(worker, { ...SHUTDOWN, [key]: 2 ** 31 - 1 });
      vi.advanceTimersByTime(3_600_000);
      expect(worker.signals).toEqual([]);
    },
  );
});

describe('the report of a worker that left', () => {
  it('has no problem where it left cleanly, and how long it took', () => {
    const worker = new FakeWorker();
    depart(worker);
    vi.advanceTimersByTime(250);
    expect(reported(worker, CLEAN)).toEqual({
      worker: worker.handle.identity,
      cause: 'shutdown',
      drainMs: 250,
      unacceptedConnections: 0,
      destroyedConnections: 0,
      destroyedWebSockets: 0,
      abortedRequests: 0,
      problem: null,
    });
  });

  it('has what the drain had to cut off', () => {
    const worker = new FakeWorker();
    depart(worker);
    worker.handle.drain = {
      durationMs: 5,
      unacceptedConnections: 4,
      destroyedConnections: 3,
      destroyedWebSockets: 1,
      abortedRequests: 2,
      hookError: null,
    };
    expect(reported(worker, CLEAN)).toMatchObject({
      unacceptedConnections: 4,
      destroyedConnections: 3,
      destroyedWebSockets: 1,
      abortedRequests: 2,
      problem: null,
    });
  });

  it('says which shutdown hook failed', () => {
    const worker = new FakeWorker();
    depart(worker);
    worker.handle.drain = {
      durationMs: 5,
      unacceptedConnections: 0,
      destroyedConnections: 0,
      destroyedWebSockets: 0,
      abortedRequests: 0,
      hookError: 'Error: pool is closed',
    };
    expect(reported(worker, CLEAN)).toMatchObject({ problem: 'Error: pool is closed' });
  });

  it('says that it was killed because it did not end in time', () => {
    const worker = new FakeWorker();
    depart(worker);
    vi.advanceTimersByTime(20_000);
    expect(reported(worker, KILLED)).toMatchObject({
      problem: 'it did not end in time and was killed',
    });
  });

  it('has no problem where it was only starting, however it ended', () => {
    const worker = new FakeWorker({ state: 'starting' });
    depart(worker);
    expect(reported(worker, KILLED)).toMatchObject({ problem: null });
  });

  it('says why the primary killed it on its way out', () => {
    const worker = new FakeWorker();
    depart(worker);
    worker.handle.condemn('memory', 'it held 500 MB of memory and was killed');
    expect(reported(worker, KILLED)).toMatchObject({
      problem: 'it held 500 MB of memory and was killed',
    });
  });

  it('says how it ended where it died on its way out', () => {
    const worker = new FakeWorker();
    depart(worker);
    expect(reported(worker, KILLED)).toMatchObject({
      problem: expect.stringContaining('SIGKILL') as string,
    });
  });
});

describe('the report of a worker that failed', () => {
  it('says how it ended, when, and the last thing it said was wrong', () => {
    const worker = new FakeWorker();
    const emit = vi.fn();
    worker.handle.error = { name: 'TypeError', message: 'x' };
    vi.advanceTimersByTime(400);
    const detail = reportFailure(
      worker.handle,
      'crash',
      { code: 1, signal: null },
      emit as EmitEvent,
    );
    expect(detail).toBe('exited with code 1');
    expect(emit.mock.calls).toEqual([
      [
        'worker-died',
        {
          worker: worker.handle.identity,
          cause: 'crash',
          detail,
          uptimeMs: 400,
          error: worker.handle.error,
          blocked: null,
        },
      ],
    ]);
  });

  it('says why the primary killed it, not that somebody did', () => {
    const worker = new FakeWorker();
    worker.handle.condemn('hang', 'it stopped answering and was killed');
    const detail = reportFailure(worker.handle, 'hang', KILLED, vi.fn() as EmitEvent);
    expect(detail).toMatch(/stopped answering/);
    expect(detail).not.toMatch(/dmesg/);
  });

  it('says what blocked it, for as long as it was blocked by the time it ended (H1)', () => {
    const worker = new FakeWorker();
    const emit = vi.fn();
    const report = {
      forMs: 1_500,
      requests: [
        { method: 'GET', path: '/spin', forMs: 1_490 },
        { method: 'POST', path: '/cats', forMs: 20_000 },
      ],
      frames: ['spin (/app/main.js:3:7)'],
    };
    vi.advanceTimersByTime(5_000);
    worker.handle.block = { report, since: performance.now() - 1_500 };
    vi.advanceTimersByTime(1_500);
    reportFailure(worker.handle, 'hang', KILLED, emit as EmitEvent);
    expect(emit.mock.calls[0]![1]).toMatchObject({
      blocked: {
        forMs: 3_000,
        requests: [
          { method: 'GET', path: '/spin', forMs: 2_990 },
          { method: 'POST', path: '/cats', forMs: 21_500 },
        ],
        frames: report.frames,
      },
    });
    expect(report.forMs).toBe(1_500);
  });
});

describe('a worker that has met an error which nobody caught', () => {
  function collapse(worker = new FakeWorker()) {
    const emit = vi.fn();
    worker.handle.error = { name: 'TypeError', message: 'x' };
    beginCollapse(worker.handle, SHUTDOWN, emit as EmitEvent);
    return { worker, emit };
  }
  const detailOf = (worker: FakeWorker, exit: ProcessExit) =>
    reportFailure(worker.handle, 'crash', exit, vi.fn() as EmitEvent);

  it('drains by itself: it is told nothing, and is said to be failing, with the error (C2)', () => {
    const { worker, emit } = collapse();
    expect(worker.handle.state).toBe('draining');
    expect([...worker.sent('drain'), ...worker.signals]).toEqual([]);
    expect(emit.mock.calls).toEqual([
      ['worker-failing', { worker: worker.handle.identity, error: worker.handle.error }],
    ]);
  });

  it('has failed by a crash, however it ends', () => {
    const { worker } = collapse();
    expect(worker.handle.condemned?.cause).toBe('crash');
    expect(detailOf(worker, CLEAN)).toBe('drained after an error that nobody caught');
  });

  it('has the time of a drain before it is killed, and is then said to have been', () => {
    const { worker } = collapse();
    vi.advanceTimersByTime(13_499);
    expect(worker.signals).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(worker.signals).toEqual(['SIGKILL']);
    expect(detailOf(worker, KILLED)).toMatch(/did not end in time.*killed/);
  });

  it('is not killed once it has ended', () => {
    const { worker } = collapse();
    worker.handle.enter('exited');
    vi.advanceTimersByTime(60_000);
    expect(worker.signals).toEqual([]);
  });
});

describe('an error that nobody caught in a worker on its way out', () => {
  it('is told at once, and is the problem of its end however that looks', () => {
    const worker = new FakeWorker();
    depart(worker);
    const emit = vi.fn();
    const error = { name: 'Error', message: 'too late' };

    reportLateError(worker.handle, error, emit as EmitEvent);

    expect(emit.mock.calls).toEqual([
      ['worker-failing', { worker: worker.handle.identity, error }],
    ]);
    expect(reported(worker, CLEAN)).toMatchObject({
      problem: 'an error that nobody caught came while it drained: Error: too late',
    });
  });
});

describe('what the hooks of an app are told', () => {
  it('is the signal of the cluster, and SIGTERM where there was none', () => {
    const [asked, recycled, late] = [
      new FakeWorker(),
      new FakeWorker(),
      new FakeWorker({ state: 'starting' }),
    ];
    const emit = vi.fn() as EmitEvent;

    beginDeparture(asked.handle, 'shutdown', SHUTDOWN, emit, 'SIGINT');
    beginDeparture(recycled.handle, 'recycle', SHUTDOWN, emit);
    beginDeparture(late.handle, 'shutdown', SHUTDOWN, emit, 'SIGHUP');
    drainAfterAll(late.handle, performance.now(), SHUTDOWN);

    expect([asked, recycled, late].flatMap((worker) => worker.sent('drain'))).toMatchObject([
      { signal: 'SIGINT' },
      { signal: 'SIGTERM' },
      { signal: 'SIGHUP' },
    ]);
  });
});
