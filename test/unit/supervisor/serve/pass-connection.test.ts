import { describe, expect, it, vi } from 'vitest';
import { passConnection } from '../../../../src/supervisor/serve/pass-connection.js';
import { FakeWorker } from '../../support/fake-worker.js';

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
    passConnection(workers, from.handle, message, handle);
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
