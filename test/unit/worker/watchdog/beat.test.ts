import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { BlockCause, ResponseObserver } from '../../../../src/contract/snapshot/index.js';
import { Beat, blockedMsOf } from '../../../../src/worker/watchdog/beat.js';
import {
  ASKED_AT,
  IS_FAST,
  MAIN_BEATS,
  THREAD_TICKS,
} from '../../../../src/worker/watchdog/beat-memory.js';

const TICK_MS = 250;
const FAST_MS = 20;

/** The clock that the beat reads. Timers have their own. */
let now = 0;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  now = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A request in flight. */
function exchange(about: { startedAt?: number; type?: string } = {}) {
  const request = {} as IncomingMessage;
  const response = {
    req: request,
    headersSent: about.type !== undefined,
    writableEnded: false,
    getHeader: () => about.type,
  } as unknown as ServerResponse;
  return { request, response, startedAt: about.startedAt ?? 0 };
}

function start({ watchdog = true } = {}) {
  const blocks: { ms: number; cause: BlockCause }[] = [];
  const observer: ResponseObserver = {
    finished() {},
    aborted() {},
    blocked: (ms, cause) => void blocks.push({ ms, cause }),
  };
  const tracker = {
    inFlight: [] as ReturnType<typeof exchange>[],
    requestsTotal: 0,
    reports: { observer } as never,
  };
  const beat = new Beat(tracker);
  const wake = vi.fn();
  if (watchdog) beat.start(TICK_MS, wake);
  const { memory } = beat;
  return {
    beat,
    memory,
    tracker,
    wake,
    blocks,
    /** Time goes on, and every timer is in time. */
    pass: (ms: number) => {
      for (let passed = 0; passed < ms; passed += 10) {
        now += 10;
        if (passed % FAST_MS === 0) memory[THREAD_TICKS]! += 1;
        vi.advanceTimersByTime(10);
      }
    },
    /** Something blocks, and then the beat comes. */
    block: (ms: number, threadTicks = Math.floor(ms / FAST_MS)) => {
      now += ms;
      memory[THREAD_TICKS]! += threadTicks;
      vi.advanceTimersByTime(FAST_MS);
    },
  };
}

describe('a slice of the event loop', () => {
  const slice = { durationMs: 120, idleMs: 0, threadTicks: 6 };

  it.each([
    ['is a block with all of its time', {}, 120],
    ['is none of 50 ms', { durationMs: 50 }, 0],
    ['is a block of more than 50 ms', { durationMs: 50.1 }, 50.1],
    ['does not count the time in which the loop waited for events', { idleMs: 15 }, 105],
    ['is none if the loop waited for most of it', { idleMs: 70 }, 0],
    ['is none if the whole process was stopped', { durationMs: 5_000, threadTicks: 1 }, 0],
    ['is one if the watchdog was late, too, by less', { threadTicks: 2 }, 120],
    ['is one without a watchdog', { threadTicks: undefined }, 120],
  ])('%s', (_what, about, blockedMs) => {
    expect(blockedMsOf({ ...slice, ...about })).toBe(blockedMs);
  });
});

describe('the beat of a worker', () => {
  it('is slow while there is no request, and then fast, and wakes the watchdog for that', () => {
    const { beat, memory, pass, wake } = start();
    pass(2 * TICK_MS);
    expect([memory[MAIN_BEATS], memory[IS_FAST]]).toEqual([2, 0]);

    beat.quicken();
    expect([memory[MAIN_BEATS], memory[IS_FAST], wake.mock.calls.length]).toEqual([3, 1, 1]);
    pass(10 * FAST_MS);
    expect([memory[MAIN_BEATS], beat.isFast]).toEqual([13, true]);
  });

  it('is slow again when no request has ended in a second and none is in flight', () => {
    const { beat, memory, pass, tracker } = start();
    tracker.inFlight = [exchange()];
    beat.quicken();
    pass(3_000);
    expect(beat.isFast).toBe(true);

    tracker.inFlight = [];
    tracker.requestsTotal = 1;
    pass(1_000);
    expect(beat.isFast).toBe(true);
    pass(1_000);
    expect([beat.isFast, memory[IS_FAST]]).toEqual([false, 0]);
    const beats = memory[MAIN_BEATS]!;
    pass(2 * TICK_MS);
    expect(memory[MAIN_BEATS]).toBe(beats + 2);
  });

  it('is not kept fast by event streams', () => {
    const { beat, pass, tracker } = start();
    tracker.inFlight = [exchange({ type: 'text/event-stream' })];
    beat.quicken();
    pass(1_000);
    expect(beat.isFast).toBe(false);
  });

  it('is off without a watchdog while there is no request', () => {
    const { beat, pass } = start({ watchdog: false });
    expect(vi.getTimerCount()).toBe(0);
    beat.quicken();
    expect(vi.getTimerCount()).toBe(1);
    pass(1_000);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a block of the event loop', () => {
  it('is told with its time and the requests in flight, the newest first', () => {
    const { beat, block, blocks, pass, tracker } = start();
    const [old, stream, young] = [exchange(), exchange({ type: 'text/event-stream' }), exchange()];
    tracker.inFlight = [old, stream, young];
    beat.quicken();
    pass(100);
    expect(blocks).toEqual([]);

    block(120);
    pass(100);
    const requests = [young.request, old.request];
    expect(blocks).toEqual([{ ms: 120, cause: { methods: [], requests } }]);
    expect(blocks[0]!.cause.requests[0]).toBe(young.request);
  });

  it('is none while the beat is slow, or the process was stopped', () => {
    const { beat, block, blocks } = start();
    now += 120;
    vi.advanceTimersByTime(TICK_MS);
    beat.quicken();
    block(5_000, 1);
    expect(blocks).toEqual([]);
  });

  it('is told where the watchdog is gone, too', () => {
    const { beat, block, blocks } = start();
    beat.stop();
    beat.quicken();
    block(120, 0);
    expect(blocks.map(({ ms }) => ms)).toEqual([120]);
  });

  class Cats {
    count(beat: Beat): void {
      beat.noteCause(undefined);
    }
    async find(beat: Beat): Promise<void> {
      await Promise.resolve();
      this.count(beat);
    }
  }

  it('has the methods that ran, and those that wait for them, if the watchdog asked in time', async () => {
    const { beat, block, blocks, memory, tracker } = start();
    const settings = () => [Error.stackTraceLimit, Reflect.get(Error, 'prepareStackTrace')];
    const before = settings();
    tracker.inFlight = [exchange()];
    beat.quicken();
    memory[ASKED_AT] = memory[MAIN_BEATS]!;
    await (async function handler() {
      await new Cats().find(beat);
    })();
    block(120);
    block(80);

    const [first, second] = blocks.map(({ cause }) => cause);
    expect(first!.methods).toEqual(expect.arrayContaining(['Cats.count', 'Cats.find']));
    expect(first!.methods.indexOf('Cats.count')).toBeLessThan(first!.methods.indexOf('Cats.find'));
    expect(first!.methods.some((method) => method.endsWith('.handler'))).toBe(true);
    expect(first!.requests).toHaveLength(1);
    // The answer is not used for the next block.
    expect(second!.methods).toEqual([]);
    expect(settings()).toEqual(before);
  });

  it('is the one request of the asynchronous context, if that is known', () => {
    const { beat, block, blocks, memory, tracker } = start();
    tracker.inFlight = [exchange(), exchange()];
    const { request } = tracker.inFlight[0]!;
    beat.quicken();
    memory[ASKED_AT] = memory[MAIN_BEATS]!;
    beat.noteCause(request);
    block(120);
    expect(blocks[0]!.cause.methods).toEqual([]);
    expect(blocks[0]!.cause.requests).toHaveLength(1);
    expect(blocks[0]!.cause.requests[0]).toBe(request);
  });

  it('has no cause that was noted after it was over', () => {
    const { beat, block, blocks, memory } = start();
    beat.quicken();
    memory[ASKED_AT] = memory[MAIN_BEATS]!;
    block(120);
    new Cats().count(beat);
    block(80);
    expect(blocks.map(({ cause }) => cause.methods)).toEqual([[], []]);
  });
});
