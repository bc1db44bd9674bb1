import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EmitEvent } from '../../src/events/index.js';
import type { BlockReport } from '../../src/ipc/index.js';
import { Heartbeat } from '../../src/primary/heartbeat.js';
import { isHung, isTickLate, type Silence } from '../../src/primary/policies/heartbeat.policy.js';
import { PRIMARY } from './fake-cluster.js';
import { FakeWorker, STATS } from './fake-worker.js';

const silence = (known: Partial<Silence> = {}): Silence => ({
  pingSentAt: undefined,
  blockedSince: undefined,
  debugged: false,
  ...known,
});

describe('a worker is hung', () => {
  it('once it owes an answer for the whole timeout, not before', () => {
    expect(isHung(silence({ pingSentAt: 1_000 }), 10_999, 10_000)).toBe(false);
    expect(isHung(silence({ pingSentAt: 1_000 }), 11_000, 10_000)).toBe(true);
  });

  it('once its watchdog has seen it blocked for the whole timeout: that clock begins earlier', () => {
    const blocked = silence({ pingSentAt: 1_400, blockedSince: 1_000 });
    expect(isHung(blocked, 10_999, 10_000)).toBe(false);
    expect(isHung(blocked, 11_000, 10_000)).toBe(true);
  });

  it('by the ping where that is the older: a block within the silence does not prolong it', () => {
    const blocked = silence({ pingSentAt: 1_000, blockedSince: 6_000 });
    expect(isHung(blocked, 11_000, 10_000)).toBe(true);
  });

  it.each([undefined, 0])('never while it owes nothing (blocked since %s)', (blockedSince) => {
    expect(isHung(silence({ blockedSince }), Number.MAX_SAFE_INTEGER, 10_000)).toBe(false);
  });

  it.each([undefined, 0])('never under a debugger (blocked since %s) (H9)', (blockedSince) => {
    const paused = silence({ pingSentAt: 0, blockedSince, debugged: true });
    expect(isHung(paused, 3_600_000, 10_000)).toBe(false);
  });

  it.each([undefined, 0])('never where it is off (blocked since %s)', (blockedSince) => {
    const silent = silence({ pingSentAt: 0, blockedSince });
    expect(isHung(silent, Number.MAX_SAFE_INTEGER, Infinity)).toBe(false);
  });
});

describe('a tick is late', () => {
  it('above twice the interval', () => {
    expect(isTickLate(1_000, 2_000, 1_000)).toBe(false);
    expect(isTickLate(1_000, 3_000, 1_000)).toBe(false);
    expect(isTickLate(1_000, 3_001, 1_000)).toBe(true);
  });
});

describe('Heartbeat', () => {
  // The fake clock of performance.now() starts at 0.
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  const options = { intervalMs: 1_000, timeoutMs: 10_000 };
  const pings = (worker: FakeWorker) => worker.sent('ping').map(({ seq }) => seq);
  const pong = (seq: number, debugged = false) =>
    ({ type: 'pong', seq, stats: STATS, debugged }) as const;

  function start(timeoutMs = options.timeoutMs, eventLoopUtilization = 0) {
    const emit = vi.fn<EmitEvent>();
    const meter = { stats: () => ({ ...PRIMARY, eventLoopUtilization }) };
    const heartbeat = new Heartbeat({ ...options, timeoutMs }, emit, meter);
    const startedAt = performance.now();
    return {
      heartbeat,
      /** What was said in a round `ms` after the start that followed one after 1 s. */
      said: (ms: number) => {
        heartbeat.beat([], startedAt + 1_000);
        heartbeat.beat([], startedAt + ms);
        return emit.mock.calls;
      },
      /** A round at `ms` after the start. */
      tick: (ms: number, ...workers: FakeWorker[]) =>
        heartbeat
          .tick(
            workers.map(({ handle }) => handle),
            startedAt + ms,
          )
          .map((hung) => workers.find(({ handle }) => handle === hung)),
    };
  }

  /** Rounds at every full second from `from` to `to` ms; the workers found hung in each. */
  function tickFrom(
    from: number,
    to: number,
    tick: ReturnType<typeof start>['tick'],
    ...workers: FakeWorker[]
  ): [number, FakeWorker | undefined][] {
    const hung: [number, FakeWorker | undefined][] = [];
    for (let ms = from; ms <= to; ms += 1_000) {
      for (const worker of tick(ms, ...workers)) hung.push([ms, worker]);
    }
    return hung;
  }

  it('pings those that run, and nobody else', () => {
    const { tick } = start();
    const workers = (['starting', 'ready', 'draining', 'exited'] as const).map(
      (state, slot) => new FakeWorker({ slot, state }),
    );
    tick(1_000, ...workers);
    expect(workers.map((worker) => pings(worker).length)).toEqual([0, 1, 1, 0]);
  });

  it('has one ping outstanding at most: a worker that is behind is given nothing more', () => {
    const { tick } = start();
    const worker = new FakeWorker();
    tickFrom(1_000, 9_000, tick, worker);
    expect(pings(worker)).toHaveLength(1);
  });

  it('pings again in the round after an answer', () => {
    const { heartbeat, tick } = start();
    const worker = new FakeWorker();
    tick(1_000, worker);
    heartbeat.pong(worker.handle, pong(pings(worker)[0]!), 1_005);
    tick(2_000, worker);
    expect(new Set(pings(worker)).size).toBe(2);
  });

  it('finds a worker that does not answer for the timeout, and not its neighbour that does', () => {
    const { heartbeat, tick } = start();
    const silent = new FakeWorker({ slot: 0 });
    const alive = new FakeWorker({ slot: 1 });
    const found: number[] = [];
    for (let ms = 1_000; found.length === 0 && ms <= 20_000; ms += 1_000) {
      for (const hung of tick(ms, silent, alive)) {
        expect(hung).toBe(silent);
        found.push(ms);
      }
      heartbeat.pong(alive.handle, pong(alive.handle.ping!.seq), ms + 1);
    }
    // The ping of the first round is 10 s old in the eleventh.
    expect(found).toEqual([11_000]);
  });

  it('finds nobody who is starting or draining: they have deadlines of their own', () => {
    const { tick } = start();
    const starting = new FakeWorker({ slot: 0, state: 'starting' });
    const draining = new FakeWorker({ slot: 1, state: 'draining' });
    expect(tickFrom(1_000, 60_000, tick, starting, draining)).toEqual([]);
  });

  it('finds nobody under a debugger', () => {
    const { heartbeat, tick } = start();
    const worker = new FakeWorker();
    tick(1_000, worker);
    heartbeat.pong(worker.handle, pong(pings(worker)[0]!, true), 1_001);
    expect(tickFrom(2_000, 600_000, tick, worker)).toEqual([]);
  });

  it('finds nobody where it is off, and still pings', () => {
    const { tick } = start(Infinity);
    const worker = new FakeWorker();
    expect(tickFrom(1_000, 600_000, tick, worker)).toEqual([]);
    expect(pings(worker)).toHaveLength(1);
  });

  it('postpones judgement after a late tick: the answers may lie unread', () => {
    const { tick } = start();
    const worker = new FakeWorker();
    tick(1_000, worker);
    // Suspended for an hour.
    expect(tick(3_601_000, worker)).toEqual([]);
    expect(tickFrom(3_602_000, 3_610_000, tick, worker)).toEqual([]);
    expect(tick(3_611_000, worker)).toEqual([worker]);
  });

  it('postpones judgement also where its first tick comes late', () => {
    const { tick } = start();
    const worker = new FakeWorker();
    worker.handle.ping = { seq: 1, sentAt: performance.now() };
    expect(tick(60_000, worker)).toEqual([]);
  });

  it('judges by the clock it is given where ticks are punctual enough', () => {
    const { tick } = start();
    const worker = new FakeWorker();
    for (const ms of [1_000, 3_000, 5_000, 7_000, 9_000]) expect(tick(ms, worker)).toEqual([]);
    expect(tick(11_000, worker)).toEqual([worker]);
  });

  it.each([
    [0.02, 'the machine was suspended or overloaded, or the process was stopped'],
    [0.98, 'its own event loop was blocked'],
  ])('says once that it was late by its timeout, and why: utilization %s', (utilization, cause) => {
    expect(start(10_000, utilization).said(18_500)).toEqual([
      [
        'warning',
        {
          message: `the primary was late by 16.5 s, more than 10000 ms (heartbeat.timeoutMs): ${cause}; no worker is judged by that time`,
        },
      ],
    ]);
  });

  it('does not say that it was late by less, nor where it judges nobody', () => {
    expect(start(10_000).said(11_999)).toEqual([]);
    expect(start(Infinity).said(3_600_000)).toEqual([]);
  });

  it('keeps what an answer says', () => {
    const { heartbeat, tick } = start();
    const { handle } = new FakeWorker();
    const worker = new FakeWorker();
    tick(1_000, worker);
    heartbeat.pong(worker.handle, pong(pings(worker)[0]!), 1_234);
    expect(worker.handle).toMatchObject({ ping: undefined, seenAt: 1_234, stats: STATS });
    expect(handle.stats).toBeUndefined();
  });

  it('takes an answer that says less: what it leaves out stays as it was', () => {
    const { heartbeat, tick } = start();
    const worker = new FakeWorker();
    tick(1_000, worker);
    heartbeat.pong(worker.handle, pong(pings(worker)[0]!, true), 1_001);
    tick(2_000, worker);
    heartbeat.pong(worker.handle, { type: 'pong', stats: { requestsTotal: 11 } }, 2_001);
    expect(worker.handle).toMatchObject({
      ping: undefined,
      seenAt: 2_001,
      stats: { ...STATS, requestsTotal: 11 },
      debugged: true,
    });
  });

  it('drops a late answer: the outstanding ping stays outstanding', () => {
    const { heartbeat, tick } = start();
    const worker = new FakeWorker();
    tick(1_000, worker);
    const first = pings(worker)[0]!;
    heartbeat.pong(worker.handle, pong(first), 1_001);
    tick(2_000, worker);
    heartbeat.pong(worker.handle, { ...pong(first), stats: { ...STATS, requestsTotal: 0 } }, 2_001);
    expect(worker.handle.ping).toBeDefined();
    expect(worker.handle.stats).toEqual(STATS);
    expect(worker.handle.seenAt).toBe(1_001);
  });

  it('drops an answer that nobody asked for', () => {
    const { heartbeat } = start();
    const worker = new FakeWorker();
    heartbeat.pong(worker.handle, pong(1), 5);
    expect(worker.handle.stats).toBeUndefined();
  });

  describe('with the report of a watchdog', () => {
    const report = (forMs: number): BlockReport => ({
      forMs,
      requests: [{ method: 'GET', path: '/spin', forMs }],
      frames: ['spin (/app/main.js:3:7)'],
    });

    /** Pinged at 1 000 ms; blocked since 400 ms, as is told at 5 400 ms. */
    function blocked() {
      const started = start();
      const worker = new FakeWorker();
      started.tick(1_000, worker);
      const { heartbeat, tick } = started;
      tickFrom(2_000, 5_000, tick, worker);
      heartbeat.blocked(worker.handle, report(5_000), 5_400);
      return { ...started, worker };
    }

    it('keeps it, with when the block began', () => {
      const { worker } = blocked();
      expect(worker.handle.block).toEqual({ report: report(5_000), since: 400 });
    });

    it('finds the worker by when it was blocked: before the ping alone would tell', () => {
      const { tick, worker } = blocked();
      expect(tickFrom(6_000, 10_000, tick, worker)).toEqual([]);
      // By the ping it would be 11 000.
      expect(tick(10_400, worker)).toEqual([worker]);
    });

    it('finds it between two rounds, when the time is up and not before', () => {
      const { heartbeat, tick, worker } = blocked();
      tickFrom(6_000, 10_000, tick, worker);
      expect(heartbeat.isOverdue(worker.handle, 10_399)).toBe(false);
      expect(heartbeat.isOverdue(worker.handle, 10_400)).toBe(true);
    });

    it('finds it no more once it has resumed', () => {
      const { heartbeat, tick, worker } = blocked();
      worker.handle.block = undefined;
      tickFrom(6_000, 10_000, tick, worker);
      expect(heartbeat.isOverdue(worker.handle, 10_400)).toBe(false);
      expect(tick(10_999, worker)).toEqual([]);
      expect(tick(11_000, worker)).toEqual([worker]);
    });

    it('gives a ping that waited behind the block a fresh window: another block may follow', () => {
      const { heartbeat, tick, worker } = blocked();
      heartbeat.resumed(worker.handle, 9_500);
      expect(worker.handle.block).toBeUndefined();
      tickFrom(6_000, 19_000, tick, worker);
      expect(tick(19_499, worker)).toEqual([]);
      expect(tick(19_500, worker)).toEqual([worker]);
    });

    it('finds nobody who owes no answer: the watchdog alone is not enough', () => {
      const { heartbeat, worker } = blocked();
      heartbeat.pong(worker.handle, pong(pings(worker)[0]!), 5_500);
      expect(heartbeat.isOverdue(worker.handle, 6_000)).toBe(false);
    });

    it('gives also the block a fresh window after a late tick (H5)', () => {
      const { heartbeat, tick, worker } = blocked();
      // Suspended: 20 s between two rounds.
      expect(tick(25_000, worker)).toEqual([]);
      expect(worker.handle.block?.since).toBe(25_000);
      expect(tickFrom(26_000, 34_000, tick, worker)).toEqual([]);
      expect(heartbeat.isOverdue(worker.handle, 34_999)).toBe(false);
      expect(heartbeat.isOverdue(worker.handle, 35_000)).toBe(true);
    });

    it('judges nobody between two rounds where the next one is late: answers may lie unread (H5)', () => {
      const { heartbeat, tick, worker } = blocked();
      tickFrom(6_000, 10_000, tick, worker);
      expect(heartbeat.isOverdue(worker.handle, 12_000)).toBe(true);
      expect(heartbeat.isOverdue(worker.handle, 12_001)).toBe(false);
    });

    it.each(['starting', 'draining', 'exited'] as const)(
      'finds nobody between two rounds who is %s',
      (state) => {
        const { heartbeat } = start();
        const worker = new FakeWorker({ state });
        worker.handle.ping = { seq: 1, sentAt: -100_000 };
        heartbeat.blocked(worker.handle, report(100_000), 0);
        expect(heartbeat.isOverdue(worker.handle, 1)).toBe(false);
      },
    );

    it('finds nobody under a debugger (H9)', () => {
      const { heartbeat, tick, worker } = blocked();
      worker.handle.debugged = true;
      expect(tickFrom(6_000, 60_000, tick, worker)).toEqual([]);
      expect(heartbeat.isOverdue(worker.handle, 60_500)).toBe(false);
    });
  });
});
