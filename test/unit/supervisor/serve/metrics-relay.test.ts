import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { body, fold, relayOf, SNAPSHOT, totalOf } from '../../support/fake-relay.js';
import { FakeWorker } from '../../support/fake-worker.js';

// performance.now() and timers stand still until they are moved.
beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A relay with two workers. */
function pair() {
  const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
  return { a, b, ...relayOf(a, b) };
}

/** A worker is sent nothing that it does not take at once. */
function clog(worker: FakeWorker): void {
  worker.clogged = true;
  worker.handle.send({ type: 'ping', seq: 1 });
}

describe('a scrape', () => {
  it('asks every other worker, and is answered once all have', () => {
    const { a, b, live, ask, answer } = pair();
    const c = new FakeWorker({ slot: 2 });
    live.push(c);

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
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends at 500 ms without a worker that is blocked, whose last metrics stand for it', () => {
    const { a, b, ask, answer, push } = pair();
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

    answer(b, 'late');
    vi.advanceTimersByTime(10_000);
    expect(a.sent('collected')).toHaveLength(1);
  });

  it('goes on while a worker only pushes its metrics, which is no answer', () => {
    const { a, b, ask, answer, push } = pair();
    ask(a, 1);
    push(b, 'pushed');
    expect(a.sent('collected')).toEqual([]);
    answer(b, 'asked');
    expect(a.sent('collected')[0]!.workers[1]).toMatchObject({ body: 'asked' });
  });

  it('does not wait again for a worker that has not answered the last one', () => {
    const { a, b, ask, answer } = pair();
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

  it.each<[what: string, change: (worker: FakeWorker) => void]>([
    ['takes no message', clog],
    ['is starting', (worker) => worker.enter('starting')],
    ['has no channel', (worker) => void (worker.connected = false)],
  ])('does not wait for a worker that %s', (_, change) => {
    const { a, b, ask } = pair();
    change(b);
    ask(a, 1);
    expect(b.sent('collect')).toEqual([]);
    expect(a.sent('collected')[0]!.workers).toEqual([{ slot: 0, ageMs: 0, body: body(1) }]);
  });

  it('includes a worker that is draining', () => {
    const { a, b, ask, answer } = pair();
    b.enter('draining');
    ask(a, 1);
    answer(b, 'B');
    expect(a.sent('collected')[0]!.workers).toHaveLength(2);
  });

  it('ends when the last worker that it waits for dies, and counts what that had sent', () => {
    const { a, b, ask, die, push } = pair();
    push(b, body(5));
    ask(a, 1);
    die(b);
    expect(a.sent('collected')).toMatchObject([{ workers: [{ slot: 0 }], retired: [body(5)] }]);
  });

  it('survives that the worker that asked is gone', () => {
    const { a, b, ask, answer, die } = pair();
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

  /** Two workers, and others that are gone. */
  function after(count: number) {
    const all = pair();
    deaths(count, all);
    return {
      ...all,
      deaths: (more: number) => deaths(more, all),
      /** The answer of a worker: it has folded `count` bodies to one that counts `total`. */
      folded: (by: FakeWorker, epoch: number, bodies: number, total: number) =>
        all.relay.folded(by.handle, epoch, bodies, body(total)),
      /** The metrics of those that are gone, as a scrape has them. */
      retired: (asker = all.a): readonly string[] => {
        const before = asker.sent('collected').length;
        all.ask(asker, before + 1);
        vi.advanceTimersByTime(500);
        return asker.sent('collected')[before]!.retired;
      },
      /** How often each worker was asked to fold. */
      folds: () => [all.a, all.b].map((worker) => worker.sent('fold').length),
    };
  }

  it('stay, also while a fold is under way', () => {
    const { retired } = after(3);
    expect(retired()).toEqual([body(1), body(1), body(1)]);
  });

  it('are none of a worker that had none', () => {
    const { a, b, die, live, push, retired } = after(0);
    const c = new FakeWorker({ slot: 2 });
    live.push(c);
    push(c, '');
    die(b);
    die(c);
    expect(retired(a)).toEqual([]);
  });

  it('are folded by a live worker once there are more than 2', () => {
    const { a, deaths: more, folded, folds, retired } = after(2);
    expect(folds()).toEqual([0, 0]);
    more(1);
    expect(a.sent('fold')).toMatchObject([{ epoch: 0, bodies: Array(3).fill(body(1)) }]);

    folded(a, 0, 3, 3);
    expect(retired()).toEqual([body(3)]);
    expect(folds()).toEqual([1, 0]);
  });

  it('that come during a fold are kept beside it, behind what was folded', () => {
    const { a, deaths: more, folded, folds, retired } = after(7);
    expect(folds()).toEqual([1, 0]);
    folded(a, 0, 3, 3);
    expect(retired()).toEqual([body(3), ...Array(4).fill(body(1))]);
    more(1);
    expect(a.sent('fold')[1]).toMatchObject({ epoch: 1 });
    expect(a.sent('fold')[1]!.bodies).toHaveLength(6);
  });

  it('are not changed by an answer of an older fold', () => {
    const { a, deaths: more, folded, retired } = after(3);
    folded(a, 0, 3, 3);
    more(2);
    expect(a.sent('fold')[1]).toMatchObject({ epoch: 1 });
    folded(a, 0, 3, 1_000);
    expect(totalOf(retired())).toBe(5);
    folded(a, 1, 3, 5);
    expect(retired()).toEqual([body(5)]);
  });

  it.each<[of: string, by: 'a' | 'b', epoch: number, bodies: number]>([
    ['a worker that was not asked', 'b', 0, 3],
    ['another fold', 'a', 1, 3],
    ['more than there was', 'a', 0, 4],
    ['none', 'a', 0, 0],
    ['one of the three', 'a', 0, 1],
    ['one and a half', 'a', 0, 1.5],
    ['two of the three', 'a', 0, 2],
  ])('are not changed by an answer of %s, nor by one that is repeated', (_, by, epoch, bodies) => {
    const { deaths: more, folded, retired, ...workers } = after(0);
    folded(workers.b, 0, 0, 1_000); // nobody was asked yet
    more(3);
    folded(workers[by], epoch, bodies, 1_000);
    expect(totalOf(retired())).toBe(3);
    folded(workers.a, 0, 3, 3);
    folded(workers.a, 0, 3, 1_000);
    folded(workers[by], epoch, bodies, 1_000);
    expect(retired()).toEqual([body(3)]);
  });

  it('are folded by another worker where the one that was asked dies', () => {
    const { a, b, die, folded, folds, retired } = after(3);
    expect(folds()).toEqual([1, 0]);

    die(a);
    expect(folds()).toEqual([1, 1]);
    folded(a, 0, 3, 1_000);
    expect(totalOf(retired(b))).toBe(3);
    folded(b, 0, 3, 3);
    expect(retired(b)).toEqual([body(3)]);
  });

  it('are folded by another worker too once there are more than 8 and no answer', () => {
    const { a, b, deaths: more, folded, folds, retired } = after(8);
    expect(folds()).toEqual([1, 0]);
    more(1);
    expect(folds()).toEqual([1, 1]);
    // The first answer is used, even if it is late. The other answer would count everything twice.
    folded(a, 0, 3, 3);
    expect(totalOf(retired(b))).toBe(9);
    folded(b, 0, 9, 1_000);
    expect(totalOf(retired(b))).toBe(9);
  });

  it('wait where the only worker does not fold them, however many there are', () => {
    const { b, die, deaths: more, folds, retired } = after(0);
    die(b);
    more(20);
    expect(folds()).toEqual([1, 0]);
    expect(totalOf(retired())).toBe(20);
  });

  it.each<[state: string, change: (worker: FakeWorker, all: ReturnType<typeof pair>) => void]>([
    ['collecting', (_, { ask, b }) => ask(b, 1)], // A does not answer
    ['clogged', clog],
    ['gone', (worker) => void (worker.connected = false)],
  ])('are not given to a worker that is %s: it would not answer soon', (_, change) => {
    const all = after(0);
    change(all.a, all);
    all.deaths(3);
    expect(all.folds()).toEqual([0, 1]);
  });

  it('may be given to a worker that is draining', () => {
    const { a, deaths: more, folds } = after(0);
    a.enter('draining');
    more(3);
    expect(folds()).toEqual([1, 0]);
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
    const { a, relay, deaths: more, retired } = after(0);
    let answered = 0;
    let largest = 0;
    for (let i = 1; i <= 1_000; i += 1) {
      more(1);
      const asked = a.sent('fold');
      if (asked.length > answered) {
        answered = asked.length;
        const { epoch, bodies } = asked.at(-1)!;
        relay.folded(a.handle, epoch, bodies.length, fold(bodies));
      }
      if (i % 100 === 0) {
        const kept = retired();
        expect(totalOf(kept)).toBe(i);
        largest = Math.max(largest, kept.length, kept.join('').length / 1_000);
      }
    }
    // Two stay, the third is folded with them: then it takes two more.
    expect(answered).toBe(499);
    expect(largest).toBeLessThanOrEqual(3);
  });
});

describe('a message that cannot be sent', () => {
  it('does not keep the next scrape from being answered', () => {
    const { a, b, ask, answer } = pair();
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
