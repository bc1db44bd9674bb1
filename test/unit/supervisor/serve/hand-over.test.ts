import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HandOver } from '../../../../src/supervisor/serve/hand-over.js';
import { FakeWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const SERVER = '127.0.0.1:3001';

function start(count: number) {
  const workers = Array.from({ length: count }, (_, slot) => new FakeWorker({ slot }));
  const handOver = new HandOver({ workers: workers.map(({ handle }) => handle) });
  return {
    workers,
    /** @returns what travelled. */
    give: (from: FakeWorker) => {
      const handle = { close: vi.fn() };
      handOver.give(from.handle, SERVER, handle);
      return handle;
    },
  };
}

describe('a connection of a worker that leaves', () => {
  it('goes to those that stay, in turn', () => {
    const { workers, give } = start(3);
    const [leaving, second, third] = workers as [FakeWorker, FakeWorker, FakeWorker];
    leaving.enter('draining');

    const [first, next, last] = [give(leaving), give(leaving), give(leaving)];

    expect(second.handles).toEqual([first, last]);
    expect(third.handles).toEqual([next]);
    expect(second.sent('connection')).toMatchObject([{ server: SERVER }, { server: SERVER }]);
    expect(first.close).toHaveBeenCalledOnce(); // the primary keeps no descriptor of it
  });

  it.each<[string, (other: FakeWorker) => void]>([
    ['drains too', (other) => other.enter('draining')],
    [
      'does not answer its pings',
      (other) => other.enter('ready', { ping: { seq: 1, sentAt: -2_000 } }),
    ],
    [
      'does not read what it is sent',
      (other) => {
        other.clogged = true;
        for (let i = 0; i < 64; i++) other.handle.send({ type: 'collect' });
      },
    ],
  ])('goes back to it where the other one %s', (_, spoil) => {
    const { workers, give } = start(2);
    const [leaving, other] = workers as [FakeWorker, FakeWorker];
    spoil(other);

    const handle = give(leaving);

    expect(leaving.handles).toEqual([handle]);
    expect(other.handles).toEqual([]);
  });

  it('is closed where its worker has gone meanwhile, and nobody else is there', () => {
    const { workers, give } = start(1);
    workers[0]!.connected = false;

    expect(give(workers[0]!).close).toHaveBeenCalledOnce();
  });
});

describe('a connection that a worker passes on', () => {
  const message = { to: '1-0123abcd', from: '0-0123abcd', head: 'R0VU' };

  function pass(spoil: (owner: FakeWorker) => void = () => {}) {
    const [from, other, owner] = [0, 1, 2].map((slot) => new FakeWorker({ slot })) as [
      FakeWorker,
      FakeWorker,
      FakeWorker,
    ];
    owner.handle.takes.add(message.to);
    spoil(owner);
    const handle = { close: vi.fn() };
    const workers = [from, other, owner].map((worker) => worker.handle);
    new HandOver({ workers }).pass(from.handle, message, handle);
    return { from, other, owner, handle };
  }

  it('is of the one who takes it by that name, also while it drains', () => {
    const { owner, handle } = pass((each) => each.enter('draining'));
    expect(owner.handles).toEqual([handle]);
    expect(owner.sent('passed')).toMatchObject([{ to: '1-0123abcd', head: 'R0VU' }]);
    expect(handle.close).toHaveBeenCalledOnce();
  });

  it.each<[string, (owner: FakeWorker) => void]>([
    ['there is no such worker', (owner) => owner.handle.takes.clear()],
    [
      'it does not read what it is sent',
      (owner) => {
        owner.clogged = true;
        for (let i = 0; i < 64; i++) owner.handle.send({ type: 'collect' });
      },
    ],
  ])('goes back where %s', (_, spoil) => {
    const { from, other, owner, handle } = pass(spoil);
    expect(from.handles).toEqual([handle]);
    expect(from.sent('passed')).toMatchObject([{ to: '0-0123abcd', head: 'R0VU' }]);
    expect([...other.handles, ...owner.handles]).toEqual([]);
  });
});
