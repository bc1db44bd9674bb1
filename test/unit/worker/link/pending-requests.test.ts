import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PendingRequests } from '../../../../src/worker/link/pending-requests.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const TIMEOUT_MS = 500;

/** Requests that are sent by `send`, or else only noted. */
function start() {
  const requests = new PendingRequests();
  const ids: number[] = [];
  const note = (id: number): void | Promise<void> => void ids.push(id);
  return {
    ids,
    ask: (send = note) =>
      requests.askOnce('thread-refused', send, TIMEOUT_MS).then((it) => it?.reason),
    alone: (send = note) =>
      requests.ask<'thread-refused'>(send, TIMEOUT_MS).then((it) => it?.reason),
    answer: (id: number, reason: string) => requests.answer({ type: 'thread-refused', id, reason }),
  };
}

describe('a request to the primary', () => {
  it('takes the first of two answers, and leaves no timer behind', async () => {
    const { ids, ask, answer } = start();
    const request = ask();
    answer(ids[0]!, 'first');
    answer(ids[0]!, 'second');
    expect(await request).toBe('first');
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
    const settled = vi.fn();
    void start()
      .ask(() => new Promise<void>(() => {}))
      .then(settled);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 1);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(settled.mock.calls).toEqual([[undefined]]);
  });

  it.each(['ask', 'alone'] as const)(
    'rejects where it cannot be asked, and leaves the next one alone (%s)',
    async (how) => {
      const started = start();
      const failed = started[how](() => Promise.reject(new Error('no metrics')));
      await expect(failed).rejects.toThrow('no metrics');
      expect(vi.getTimerCount()).toBe(0);
      const next = started[how]();
      started.answer(started.ids[0]!, 'yes');
      expect(await next).toBe('yes');
    },
  );

  it('is shared by those who share, and not with one that is asked alone', async () => {
    const { ids, ask, alone, answer } = start();
    void alone();
    const shared = [ask(), ask()];
    expect(ids).toHaveLength(2);
    answer(ids[1]!, 'shared');
    expect(await Promise.all(shared)).toEqual(['shared', 'shared']);
  });
});
