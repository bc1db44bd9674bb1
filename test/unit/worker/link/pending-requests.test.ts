import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type AnswerMessage,
  PendingRequests,
} from '../../../../src/worker/link/pending-requests.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function start(timeoutMs = 500) {
  const requests = new PendingRequests();
  const ids: number[] = [];
  const ask = (send = (id: number): void | Promise<void> => void ids.push(id)) =>
    requests.askOnce('hub-refused', send, timeoutMs).then((answer) => answer?.reason);
  const alone = (send = (id: number): void | Promise<void> => void ids.push(id)) =>
    requests.ask<'hub-refused'>(send, timeoutMs).then((answer) => answer?.reason);
  const answer = (id: number, reason: string) =>
    requests.answer({ type: 'hub-refused', id, reason } satisfies AnswerMessage);
  return { requests, ids, ask, alone, answer };
}

/** The value or the error of `promise`, or `'pending'`. */
async function stateOf(promise: Promise<unknown>): Promise<unknown> {
  let state: unknown = 'pending';
  promise.then(
    (value) => (state = value),
    (error: unknown) => (state = error),
  );
  await vi.advanceTimersByTimeAsync(0);
  return state;
}

describe('a request to the primary', () => {
  it('resolves with its answer', async () => {
    const { ids, ask, answer } = start();
    const request = ask();
    expect(await stateOf(request)).toBe('pending');
    answer(ids[0]!, 'yes');
    expect(await request).toBe('yes');
  });

  it('is shared by those who ask while it is under way', async () => {
    const { ids, ask, answer } = start();
    const all = [ask(), ask(), ask()];
    expect(ids).toHaveLength(1);
    answer(ids[0]!, 'yes');
    expect(await Promise.all(all)).toEqual(['yes', 'yes', 'yes']);
  });

  it('is asked anew after the answer, with an id of its own', async () => {
    const { ids, ask, answer } = start();
    const first = ask();
    answer(ids[0]!, 'old');
    await first;
    const second = ask();
    expect(new Set(ids).size).toBe(2);
    answer(ids[1]!, 'new');
    expect(await second).toBe('new');
  });

  it('resolves with nothing at its deadline, not before', async () => {
    const { ask } = start(500);
    const request = ask();
    await vi.advanceTimersByTimeAsync(499);
    expect(await stateOf(request)).toBe('pending');
    await vi.advanceTimersByTimeAsync(1);
    expect(await stateOf(request)).toBeUndefined();
  });

  it('drops an answer that is late: it is not taken for that of the next', async () => {
    const { ids, ask, answer } = start();
    const first = ask();
    await vi.advanceTimersByTimeAsync(500);
    await first;
    const second = ask();
    answer(ids[0]!, 'late');
    expect(await stateOf(second)).toBe('pending');
    answer(ids[1]!, 'in time');
    expect(await second).toBe('in time');
  });

  it('takes the first of two answers', async () => {
    const { ids, ask, answer } = start();
    const request = ask();
    answer(ids[0]!, 'first');
    answer(ids[0]!, 'second');
    expect(await request).toBe('first');
  });

  it('drops an answer that nobody asked for', () => {
    expect(() => start().answer(99, 'what?')).not.toThrow();
  });

  it('leaves no timer behind once it is answered', async () => {
    const { ids, ask, answer } = start();
    const request = ask();
    answer(ids[0]!, 'yes');
    await request;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('may be answered before the sending is done', async () => {
    const { ask, answer } = start();
    let sent!: () => void;
    const request = ask((id) => {
      answer(id, 'quick');
      return new Promise<void>((resolve) => (sent = resolve));
    });
    sent();
    expect(await request).toBe('quick');
  });

  it('resolves at its deadline also where the sending does not end: a stopped primary reads nothing', async () => {
    const { ask } = start(500);
    const request = ask(() => new Promise<void>(() => {}));
    await vi.advanceTimersByTimeAsync(500);
    expect(await stateOf(request)).toBeUndefined();
  });

  it('rejects where it cannot be asked, and leaves the next one alone', async () => {
    const { ids, ask, answer } = start();
    const failed = ask(() => Promise.reject(new Error('no metrics')));
    await expect(failed).rejects.toThrow('no metrics');
    const next = ask();
    answer(ids[0]!, 'yes');
    expect(await next).toBe('yes');
  });
});

describe('a request without a deadline', () => {
  it('waits for its answer however long that takes, and has no timer', async () => {
    const { ids, ask, answer } = start(Infinity);
    const request = ask();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(7 * 24 * 3_600_000);
    expect(await stateOf(request)).toBe('pending');
    answer(ids[0]!, 'yes');
    expect(await request).toBe('yes');
  });

  it('ends with the primary', async () => {
    const { requests, ask } = start(Infinity);
    const request = ask();
    requests.abandon();
    expect(await request).toBeUndefined();
  });
});

describe('a request that is asked alone', () => {
  it('shares neither its question nor its answer', async () => {
    const { ids, alone, answer } = start();
    const [first, second] = [alone(), alone()];
    expect(new Set(ids).size).toBe(2);
    answer(ids[1]!, 'two');
    expect([await stateOf(first), await second]).toEqual(['pending', 'two']);
    answer(ids[0]!, 'one');
    expect(await first).toBe('one');
  });

  it('is not shared by one that would share', async () => {
    const { ids, ask, alone, answer } = start();
    void alone();
    const shared = [ask(), ask()];
    expect(ids).toHaveLength(2);
    answer(ids[1]!, 'shared');
    expect(await Promise.all(shared)).toEqual(['shared', 'shared']);
  });

  it('has the same deadline', async () => {
    const { alone } = start(500);
    const request = alone();
    await vi.advanceTimersByTimeAsync(499);
    expect(await stateOf(request)).toBe('pending');
    await vi.advanceTimersByTimeAsync(1);
    expect(await stateOf(request)).toBeUndefined();
  });

  it('rejects where it cannot be asked', async () => {
    const { alone } = start();
    const failed = alone(() => Promise.reject(new Error('no channel')));
    await expect(failed).rejects.toThrow('no channel');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends with the primary, as all do', async () => {
    const { requests, alone } = start(Infinity);
    const all = [alone(), alone()];
    requests.abandon();
    expect(await Promise.all(all)).toEqual([undefined, undefined]);
  });
});

describe('requests to a primary that is gone', () => {
  it('resolve with nothing at once', async () => {
    const { requests, ask } = start();
    const all = [ask(), ask()];
    requests.abandon();
    expect(await Promise.all(all)).toEqual([undefined, undefined]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('may be none', () => {
    expect(() => start().requests.abandon()).not.toThrow();
  });
});
