import { describe, expect, it, vi } from 'vitest';
import { HubCore, type WorkerMessage } from '../../../src/thread/hub-core.js';
import { NO_BODY } from '../../../src/wire/limits.js';
import { fakePeer } from '../support/hub-workers.js';

function start() {
  const core = new HubCore();
  const peer = (slot: number) => {
    const { peer, told } = fakePeer(slot);
    const say = (said: object, body = NO_BODY) => core.receive(peer, said as WorkerMessage, body);
    return { peer, told, say };
  };
  return { core, peer };
}

const KEY = { cache: 'c', key: 'k' };
const VALUE = { ...KEY, form: 's', ttlMs: null, maxBytes: 2 ** 20 };

describe('the hub', () => {
  it('gives the value to all who wait for it once one has computed it, and the lease to nobody', () => {
    const { peer } = start();
    const [first, second, third] = [peer(0), peer(1), peer(2)];
    for (const { say } of [first, second, third]) say({ op: 'lease', id: 1, ...KEY, waitMs: 1e4 });
    const { grant } = first.told[0] as { grant: number };
    expect([second.told, third.told]).toEqual([[], []]);
    first.say({ op: 'fill', id: 2, grant, ...VALUE }, Buffer.from('v'));
    const hit = { t: 'hit', id: 1, form: 's' };
    expect([second.told, third.told]).toEqual([[hit], [hit]]);
  });

  it('takes a space in the name of a cache for no part of a key: each has a lease of its own', () => {
    const { peer } = start();
    const [first, second] = [peer(0), peer(1)];
    first.say({ op: 'lease', id: 1, cache: 'a b', key: 'c', waitMs: 1e4 });
    second.say({ op: 'lease', id: 1, cache: 'a', key: 'b c', waitMs: 1e4 });
    expect([first.told, second.told]).toMatchObject([[{ t: 'granted' }], [{ t: 'granted' }]]);
  });

  it('removes expired values once a minute, because a look at all of them takes long', () => {
    let now = 1e6;
    const core = new HubCore(undefined, () => now);
    const { peer, told } = fakePeer();
    const entriesAt = (ms: number) => {
      now += ms;
      core.sweep();
      core.receive(peer, { op: 'stats', id: 1 }, NO_BODY);
      return told.at(-1);
    };
    core.sweep();
    core.receive(peer, { op: 'set', id: 0, ...VALUE, ttlMs: 10 }, Buffer.from('v'));
    expect(entriesAt(1_000)).toMatchObject({ caches: [{ entries: 1 }] });
    expect(entriesAt(60_000)).toMatchObject({ caches: [{ entries: 0 }] });
  });

  it('has no cache for which the others leave no memory, and says so', () => {
    const core = new HubCore(undefined, undefined, 3 * 2 ** 20);
    const { peer, told } = fakePeer();
    const set = (cache: string, maxBytes: number) => {
      const said = { op: 'set', id: 1, ...VALUE, cache, maxBytes } as WorkerMessage;
      core.receive(peer, said, NO_BODY);
    };
    set('one', 2 ** 21);
    set('two', 2 ** 21);
    set('two', 2 ** 20);
    set('one', 2 ** 22);
    set('one', 2 ** 20);
    set('two', 2 ** 21);
    expect(told.map(({ t }) => t)).toEqual(['done', 'refused', 'done', 'refused', 'done', 'done']);
    expect(told[1]).toMatchObject({
      why: 'its maxBytes is 2097152, and of the memory of 3145728 bytes the other caches leave 1048576; give all caches together less',
    });
  });

  it('takes a lease from its holder with what is cleared, and with nothing else', () => {
    const { peer } = start();
    const [holder, other] = [peer(0), peer(1)];
    const keys = ['a\0k', 'b\0k', 'a'];
    for (const [id, key] of keys.entries()) {
      holder.say({ op: 'lease', id, cache: 'c', key, waitMs: 0 });
    }
    other.say({ op: 'clear', id: 1, cache: 'c', prefix: 'a\0' });
    for (const cache of ['c1', '1 c']) other.say({ op: 'clear', id: 2, cache });
    const grants = holder.told.map((told) => (told as { grant: number }).grant);
    for (const [n, key] of keys.entries()) {
      holder.say({ op: 'fill', id: 10 + n, grant: grants[n], ...VALUE, cache: 'c', key });
    }
    expect(holder.told.slice(3).map(({ t }) => t)).toEqual(['void', 'done', 'done']);
  });

  it('answers others while it clears a part of a large cache, and then says that it is done', async () => {
    const { told, say } = start().peer(0);
    const keys = ['b1', ...Array.from({ length: 10_001 }, (_, n) => `a${n}`)];
    for (const key of keys) say({ op: 'set', id: 0, ...VALUE, key, maxBytes: 2 ** 24 });
    told.length = 0;
    say({ op: 'clear', id: 1, cache: 'c', prefix: 'a' });
    say({ op: 'get', id: 2, cache: 'c', key: 'b1' });
    expect(told).toEqual([{ t: 'hit', id: 2, form: 's' }]);
    const isDone = () => told.some(({ t }) => t === 'done');
    await vi.waitFor(() => expect(isDone()).toBe(true));
    say({ op: 'get', id: 3, cache: 'c', key: 'a1' });
    say({ op: 'clear', id: 4, cache: 'none', prefix: 'a' });
    expect(told.slice(1)).toEqual([
      { t: 'done', id: 1, changed: 0, evicted: 0 },
      { t: 'miss', id: 3 },
      { t: 'done', id: 4, changed: 0, evicted: 0 },
    ]);
  });

  it('sends no events to a worker that is gone', () => {
    const { core, peer } = start();
    const [sender, gone] = [peer(0), peer(1)];
    gone.say({ op: 'subscribe', id: 1 });
    core.leave(gone.peer);
    gone.told.length = 0;
    sender.say({ op: 'publish', id: 2, name: 'n', to: 'all' });
    expect(gone.told).toEqual([]);
    expect(sender.told).toEqual([{ t: 'done', id: 2, changed: 0, evicted: 0 }]);
  });

  it('has no more than 64 caches, since each of them has a bound of its own', () => {
    const { told, say } = start().peer(0);
    for (let n = 0; n < 65; n += 1) say({ op: 'set', id: n, ...VALUE, cache: `c${n}` });
    expect(told.filter(({ t }) => t === 'done')).toHaveLength(64);
    expect(told.at(-1)).toEqual({
      t: 'refused',
      id: 64,
      why: 'there are too many caches; give several the same name',
    });
  });
});

describe('a request of a worker', () => {
  const request = { op: 'publish', name: 'n', to: 1, request: true };
  const reply = { op: 'reply', to: 1, failed: false };

  function ask() {
    const { core, peer } = start();
    const [asker, answers, other] = [peer(0), peer(1), peer(2)];
    for (const { say } of [asker, answers, other]) say({ op: 'subscribe', id: 1 });
    asker.say({ ...request, id: 2 });
    for (const { told } of [asker, answers, other]) told.length = 0;
    return { core, asker, answers, other };
  }

  it('fails where the worker that has got it goes', () => {
    const { core, asker, answers, other } = ask();
    core.leave(other.peer);
    expect(asker.told).toEqual([]);
    core.leave(answers.peer);
    expect(asker.told).toEqual([{ t: 'refused', id: 2, why: 'its worker is gone' }]);
  });

  it('is answered once, by the worker that has got it', () => {
    const { core, asker, answers, other } = ask();
    other.say({ ...reply, request: 2 });
    expect(asker.told).toEqual([]);
    for (let times = 0; times < 2; times += 1) answers.say({ ...reply, request: 2 });
    core.leave(answers.peer);
    expect(asker.told).toEqual([{ t: 'reply', id: 2, failed: false }]);
  });

  it.each<[string, (asked: ReturnType<typeof ask>) => void]>([
    ['has given up', ({ asker }) => asker.say({ op: 'cancel', id: 2 })],
    ['is gone', ({ core, asker }) => core.leave(asker.peer)],
  ])('is forgotten where the one who asked %s', (_, end) => {
    const asked = ask();
    end(asked);
    asked.answers.say({ ...reply, request: 2 });
    asked.core.leave(asked.answers.peer);
    expect(asked.asker.told).toEqual([]);
  });
});
