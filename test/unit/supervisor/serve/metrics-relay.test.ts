import { constants } from 'node:buffer';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PrimaryMessage } from '../../../../src/contract/ipc/index.js';
import {
  COLLECTION_TIMEOUT_MS,
  type CollectedMetrics,
} from '../../../../src/contract/snapshot/index.js';
import { body, fold, relayOf, SNAPSHOT, totalOf } from '../../support/fake-relay.js';
import { FakeWorker } from '../../support/fake-worker.js';

// performance.now() and timers stand still until they are moved.
beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe('a scrape', () => {
  it('asks every other worker, and is answered once all have', () => {
    const [a, b, c] = [0, 1, 2].map((slot) => new FakeWorker({ slot })) as [
      FakeWorker,
      FakeWorker,
      FakeWorker,
    ];
    const { ask, answer } = relayOf(a, b, c);

    ask(a, 7);
    expect([a, b, c].map((worker) => worker.sent('collect').length)).toEqual([0, 1, 1]);
    answer(b, 'B');
    expect(a.sent('collected')).toEqual([]);
    answer(c, 'C');

    expect(a.sent('collected')).toMatchObject([
      {
        id: 7,
        snapshot: SNAPSHOT,
        workers: [
          { slot: 0, ageMs: 0, body: body(7) },
          { slot: 1, ageMs: 0, body: 'B' },
          { slot: 2, ageMs: 0, body: 'C' },
        ],
        retired: [],
      },
    ]);
    expect([b.sent('collected'), c.sent('collected')]).toEqual([[], []]);
  });

  it('of a single worker is answered at once', () => {
    const worker = new FakeWorker();
    const { ask } = relayOf(worker);
    ask(worker, 1);
    expect(worker.sent('collected')).toHaveLength(1);
  });

  it('after it begins anew', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = relayOf(a, b);
    ask(a, 1);
    answer(b, 'old');
    ask(a, 2);
    expect(a.sent('collected')).toHaveLength(1);
    answer(b, 'new');
    expect(a.sent('collected')[1]!.workers[1]).toMatchObject({ body: 'new' });
  });

  it('ends at 500 ms without a worker that is blocked, whose last metrics stand for it', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, push } = relayOf(a, b);
    push(b, 'before');
    vi.advanceTimersByTime(4_000);
    ask(a, 1);

    vi.advanceTimersByTime(499);
    expect(a.sent('collected')).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(a.sent('collected')[0]!.workers).toEqual([
      { slot: 0, ageMs: 500, body: body(1) },
      { slot: 1, ageMs: 4_500, body: 'before' },
    ]);
  });

  it('is answered once, however late a worker answers', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = relayOf(a, b);
    ask(a, 1);
    vi.advanceTimersByTime(500);
    answer(b, 'late');
    vi.advanceTimersByTime(10_000);
    expect(a.sent('collected')).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('goes on while a worker only pushes its metrics, which is no answer', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer, push } = relayOf(a, b);
    ask(a, 1);
    push(b, 'pushed');
    expect(a.sent('collected')).toEqual([]);
    answer(b, 'asked');
    expect(a.sent('collected')[0]!.workers[1]).toMatchObject({ body: 'asked' });
  });

  it('has no deadline left behind once it is answered', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = relayOf(a, b);
    ask(a, 1);
    answer(b, 'B');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('does not wait again for a worker that has not answered the last one', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = relayOf(a, b);
    ask(a, 1);
    vi.advanceTimersByTime(500);

    ask(a, 2);
    expect(a.sent('collected').map(({ id }) => id)).toEqual([1, 2]);
    expect(b.sent('collect')).toHaveLength(1);

    answer(b, 'back');
    ask(a, 3);
    expect(b.sent('collect')).toHaveLength(2);
    expect(a.sent('collected')).toHaveLength(2);
  });

  it('does not wait for a worker that takes no message', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask } = relayOf(a, b);
    b.clogged = true;
    b.handle.send({ type: 'ping', seq: 1 });
    ask(a, 1);
    expect(b.sent('collect')).toEqual([]);
    expect(a.sent('collected')).toHaveLength(1);
  });

  it('does not wait for a worker that is starting, nor for one without a channel', () => {
    const a = new FakeWorker({ slot: 0 });
    const starting = new FakeWorker({ slot: 1, state: 'starting' });
    const gone = new FakeWorker({ slot: 2 });
    gone.connected = false;
    const { ask } = relayOf(a, starting, gone);
    ask(a, 1);
    expect(a.sent('collected')[0]!.workers).toEqual([{ slot: 0, ageMs: 0, body: body(1) }]);
  });

  it('includes a worker that is draining', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1, state: 'draining' })];
    const { ask, answer } = relayOf(a, b);
    ask(a, 1);
    answer(b, 'B');
    expect(a.sent('collected')[0]!.workers).toHaveLength(2);
  });

  it('ends when the last worker that it waits for dies, and counts what that had sent', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, die, push } = relayOf(a, b);
    push(b, body(5));
    ask(a, 1);
    die(b);
    expect(a.sent('collected')).toMatchObject([{ workers: [{ slot: 0 }], retired: [body(5)] }]);
  });

  it('survives that the worker that asked is gone', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer, die } = relayOf(a, b);
    ask(a, 1);
    die(a);
    expect(() => answer(b, body(1))).not.toThrow();
    expect(a.sent('collected')).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('metrics of workers that are gone', () => {
  /** Lets `count` workers live and die, each of which has counted 1. */
  function deaths(count: number, { push, live, die }: ReturnType<typeof relayOf>): void {
    for (let i = 0; i < count; i += 1) {
      const worker = new FakeWorker({ slot: 9 });
      live.push(worker);
      push(worker, body(1));
      die(worker);
    }
  }

  const retired = (asker: FakeWorker, { ask }: ReturnType<typeof relayOf>): readonly string[] => {
    const before = asker.sent('collected').length;
    ask(asker, before + 1);
    vi.advanceTimersByTime(500);
    return asker.sent('collected')[before]!.retired;
  };

  it('stay', () => {
    const a = new FakeWorker();
    const all = relayOf(a);
    deaths(3, all);
    expect(retired(a, all)).toEqual([body(1), body(1), body(1)]);
  });

  it('are none of a worker that had none', () => {
    const [a, b, c] = [0, 1, 2].map((slot) => new FakeWorker({ slot }));
    const all = relayOf(a!, b!, c!);
    all.push(c!, '');
    all.die(b!);
    all.die(c!);
    expect(retired(a!, all)).toEqual([]);
  });

  it('are folded by a live worker once there are more than 2', () => {
    const a = new FakeWorker();
    const all = relayOf(a);
    deaths(2, all);
    expect(a.sent('fold')).toEqual([]);
    deaths(1, all);
    expect(a.sent('fold')).toMatchObject([{ epoch: 0, bodies: Array(3).fill(body(1)) }]);

    all.relay.folded(a.handle, 0, 3, body(3));
    expect(retired(a, all)).toEqual([body(3)]);
    expect(a.sent('fold')).toHaveLength(1);
  });

  it('that come during a fold are kept beside it, behind what was folded', () => {
    const a = new FakeWorker();
    const all = relayOf(a);
    deaths(7, all);
    expect(a.sent('fold')).toHaveLength(1);
    all.relay.folded(a.handle, 0, 3, body(3));
    expect(retired(a, all)).toEqual([body(3), ...Array(4).fill(body(1))]);
    deaths(1, all);
    expect(a.sent('fold')[1]).toMatchObject({ epoch: 1 });
    expect(a.sent('fold')[1]!.bodies).toHaveLength(6);
  });

  it('are all still there while a fold is under way', () => {
    const a = new FakeWorker();
    const all = relayOf(a);
    deaths(3, all);
    expect(totalOf(retired(a, all))).toBe(3);
  });

  it('are not folded twice by an answer that is repeated', () => {
    const a = new FakeWorker();
    const all = relayOf(a);
    deaths(3, all);
    all.relay.folded(a.handle, 0, 3, body(3));
    all.relay.folded(a.handle, 0, 3, body(3));
    all.relay.folded(a.handle, 0, 1, body(1_000));
    all.relay.folded(a.handle, 1, 1, body(1_000));
    expect(totalOf(retired(a, all))).toBe(3);
  });

  it('are not changed by an answer of an older fold', () => {
    const a = new FakeWorker();
    const all = relayOf(a);
    deaths(3, all);
    all.relay.folded(a.handle, 0, 3, body(3));
    deaths(2, all);
    expect(a.sent('fold')[1]).toMatchObject({ epoch: 1 });
    all.relay.folded(a.handle, 0, 3, body(1_000));
    expect(totalOf(retired(a, all))).toBe(5);
    all.relay.folded(a.handle, 1, 3, body(5));
    expect(retired(a, all)).toEqual([body(5)]);
  });

  it('are not changed by a worker that was not asked, nor by more than there was', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const all = relayOf(a, b);
    all.relay.folded(b.handle, 0, 0, body(1_000));
    deaths(3, all);
    all.relay.folded(b.handle, 0, 3, body(1_000));
    all.relay.folded(a.handle, 0, 4, body(1_000));
    expect(totalOf(retired(a, all))).toBe(3);
    all.relay.folded(a.handle, 0, 3, body(3));
    expect(retired(a, all)).toEqual([body(3)]);
  });

  it.each([0, 1, 1.5, 2])(
    'are not changed where %d of the three are said to be folded',
    (count) => {
      const a = new FakeWorker();
      const all = relayOf(a);
      deaths(3, all);
      all.relay.folded(a.handle, 0, count, body(3));
      expect(totalOf(retired(a, all))).toBe(3);
    },
  );

  it('are folded by another worker where the one that was asked dies', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const all = relayOf(a, b);
    deaths(3, all);
    expect([a.sent('fold').length, b.sent('fold').length]).toEqual([1, 0]);

    all.die(a);
    expect(b.sent('fold')).toHaveLength(1);
    all.relay.folded(a.handle, 0, 3, body(1_000));
    expect(totalOf(retired(b, all))).toBe(3);
    all.relay.folded(b.handle, 0, 3, body(3));
    expect(retired(b, all)).toEqual([body(3)]);
  });

  it('are folded by another worker too once there are more than 8 and no answer', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const all = relayOf(a, b);
    deaths(8, all);
    expect([a.sent('fold').length, b.sent('fold').length]).toEqual([1, 0]);
    deaths(1, all);
    expect([a.sent('fold').length, b.sent('fold').length]).toEqual([1, 1]);
    // The first answer is used, even if it is late. The other answer would count everything twice.
    all.relay.folded(a.handle, 0, 3, body(3));
    expect(totalOf(retired(b, all))).toBe(9);
    all.relay.folded(b.handle, 0, 9, body(1_000));
    expect(totalOf(retired(b, all))).toBe(9);
  });

  it('wait where the only worker does not fold them, however many there are', () => {
    const a = new FakeWorker();
    const all = relayOf(a);
    deaths(20, all);
    expect(a.sent('fold')).toHaveLength(1);
    expect(totalOf(retired(a, all))).toBe(20);
  });

  it.each(['collecting', 'clogged', 'gone'] as const)(
    'are not given to a worker that is %s: it would not answer soon',
    (state) => {
      const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
      const all = relayOf(a, b);
      if (state === 'collecting') all.ask(b, 1); // A does not answer
      a.connected = state !== 'gone';
      a.clogged = state === 'clogged';
      if (state === 'clogged') a.handle.send({ type: 'ping', seq: 1 });
      deaths(3, all);
      expect([a.sent('fold').length, b.sent('fold').length]).toEqual([0, 1]);
    },
  );

  it('may be given to a worker that is draining', () => {
    const a = new FakeWorker({ state: 'draining' });
    const all = relayOf(a);
    deaths(3, all);
    expect(a.sent('fold')).toHaveLength(1);
  });

  it('wait for a worker that can fold them', () => {
    const all = relayOf();
    deaths(20, all);
    const a = new FakeWorker({ state: 'starting' });
    all.live.push(a);
    all.relay.foldIfNeeded();
    expect(a.sent('fold')).toEqual([]);

    a.enter('ready');
    all.relay.foldIfNeeded();
    expect(a.sent('fold')[0]!.bodies).toHaveLength(20);
  });

  it('take bounded memory, and lose nothing, over 1,000 deaths', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const all = relayOf(a, b);
    let answered = 0;
    let largest = 0;
    for (let i = 1; i <= 1_000; i += 1) {
      deaths(1, all);
      const asked = a.sent('fold');
      if (asked.length > answered) {
        answered = asked.length;
        const { epoch, bodies } = asked.at(-1)!;
        all.relay.folded(a.handle, epoch, bodies.length, fold(bodies));
      }
      if (i % 100 === 0) {
        const kept = retired(a, all);
        expect(totalOf(kept)).toBe(i);
        largest = Math.max(largest, kept.length, kept.join('').length / 1_000);
      }
    }
    // Two stay, the third is folded with them: then it takes two more.
    expect(answered).toBe(499);
    expect(largest).toBeLessThanOrEqual(3);
  });
});

describe('metrics that are more than the primary holds', () => {
  const MEBI = 1024 * 1024;
  const large = 'x'.repeat(16 * MEBI);

  /** 25 workers, and what each of them sends. */
  function flood(text: string) {
    const workers = Array.from({ length: 25 }, (_, slot) => new FakeWorker({ slot }));
    const all = relayOf(...workers);
    for (const worker of workers) all.push(worker, text);
    return { ...all, workers };
  }

  it('are left out, so that what is sent stays below the longest string of V8', () => {
    const { ask, workers } = flood(large);
    const sent: unknown[] = [];
    vi.spyOn(workers[0]!.handle, 'send').mockImplementation((message) => void sent.push(message));
    ask(workers[0]!, 1);
    vi.advanceTimersByTime(500);
    const [{ workers: held }] = sent as [PrimaryMessage & { type: 'collected' }];
    expect(held.length).toBeLessThan(25);
    const length = held.reduce((sum, { body: text }) => sum + text.length, 0);
    // JSON writes a character as six at most.
    expect(6 * length).toBeLessThan(constants.MAX_STRING_LENGTH);
  });

  it('leave what was sent before in their place', async () => {
    const { ask, gather, push, workers } = flood('small');
    vi.advanceTimersByTime(4_000);
    for (const worker of workers) push(worker, large);
    const answers = gather();
    await vi.advanceTimersByTimeAsync(COLLECTION_TIMEOUT_MS);
    const [{ workers: held }] = answers as [CollectedMetrics];
    expect(held.filter(({ body: text }) => text === large).length).toBeGreaterThan(0);
    expect(held.at(-1)).toEqual({
      slot: 24,
      ageMs: 4_000 + COLLECTION_TIMEOUT_MS,
      body: 'small',
    });
    expect(() => ask(workers.at(-1)!, 1)).not.toThrow();
  });

  it('are counted by slot, and said in one line', () => {
    const { slots, warnings } = flood(large);
    expect(slots[24]!.refusedMetrics).toBe(1);
    expect(slots[0]!.refusedMetrics).toBe(0);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^metrics of all workers together are larger than 80 MB: 16 MB are left/,
      ),
    ]);
  });

  it('are none of a worker whose own are replaced', () => {
    const worker = new FakeWorker();
    const { push, warnings } = relayOf(worker);
    for (let i = 0; i < 10; i += 1) push(worker, large);
    expect(warnings).toEqual([]);
  });

  it('are counted with those of workers that are gone', () => {
    const { workers, die, push, slots } = flood('x'.repeat(3 * MEBI));
    const [first] = workers;
    die(first!);
    push(workers[1]!, large);
    expect(slots[1]!.refusedMetrics).toBe(1);
  });
});

describe('a message that cannot be sent', () => {
  it('does not keep the next scrape from being answered', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = relayOf(a, b);
    const send = vi.spyOn(a.handle, 'send').mockImplementationOnce(() => {
      throw new RangeError('Invalid string length');
    });
    ask(a, 1);
    expect(() => answer(b, 'B')).toThrow('Invalid string length');
    send.mockRestore();
    expect(vi.getTimerCount()).toBe(0);
    ask(a, 2);
    answer(b, 'B');
    expect(a.sent('collected')).toMatchObject([{ id: 2 }]);
  });
});
