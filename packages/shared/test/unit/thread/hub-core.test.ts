import { describe, expect, it } from 'vitest';
import { HubCore, type WorkerMessage } from '../../../src/thread/hub-core.js';
import { NO_BODY } from '../../../src/wire/frame-socket.js';
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
const VALUE = { ...KEY, ttlMs: null, maxBytes: 2 ** 20 };

describe('the hub', () => {
  it('gives the value to all who wait for it once one has computed it, and the lease to nobody', () => {
    const { peer } = start();
    const [first, second, third] = [peer(0), peer(1), peer(2)];
    for (const { say } of [first, second, third]) say({ op: 'lease', id: 1, ...KEY });
    const { grant } = first.told[0] as { grant: number };
    expect([second.told, third.told]).toEqual([[], []]);
    first.say({ op: 'fill', id: 2, grant, ...VALUE }, Buffer.from('v'));
    const hit = { t: 'hit', id: 1 };
    expect([second.told, third.told]).toEqual([[hit], [hit]]);
  });

  it('takes a space in the name of a cache for no part of a key: each has a lease of its own', () => {
    const { peer } = start();
    const [first, second] = [peer(0), peer(1)];
    first.say({ op: 'lease', id: 1, cache: 'a b', key: 'c' });
    second.say({ op: 'lease', id: 1, cache: 'a', key: 'b c' });
    expect([first.told, second.told]).toMatchObject([[{ t: 'granted' }], [{ t: 'granted' }]]);
  });

  it('takes a lease from its holder with what is cleared, and with nothing else', () => {
    const { peer } = start();
    const [holder, other] = [peer(0), peer(1)];
    const keys = ['a\0k', 'b\0k', 'a'];
    for (const [id, key] of keys.entries()) {
      holder.say({ op: 'lease', id, cache: 'c', key });
    }
    other.say({ op: 'clear', id: 1, cache: 'c', prefix: 'a\0' });
    for (const cache of ['c1', '1 c']) other.say({ op: 'clear', id: 2, cache });
    const grants = holder.told.map((told) => (told as { grant: number }).grant);
    for (const [n, key] of keys.entries()) {
      holder.say({ op: 'fill', id: 10 + n, grant: grants[n], ...VALUE, cache: 'c', key });
    }
    expect(holder.told.slice(3).map(({ t }) => t)).toEqual(['void', 'done', 'done']);
  });

  it('sends no events to a worker that is gone', () => {
    const { core, peer } = start();
    const [sender, gone] = [peer(0), peer(1)];
    gone.say({ op: 'subscribe', id: 1 });
    core.leave(gone.peer);
    gone.told.length = 0;
    sender.say({ op: 'publish', id: 2, name: 'n', to: 'all' });
    expect(gone.told).toEqual([]);
    expect(sender.told).toEqual([{ t: 'done', id: 2, changed: 0, missed: 0 }]);
  });
});

describe('a request of a worker', () => {
  const request = { op: 'publish', name: 'n', to: 1, request: true };

  function ask() {
    const { core, peer } = start();
    const [asker, answers, other] = [peer(0), peer(1), peer(2)];
    for (const { say } of [asker, answers, other]) say({ op: 'subscribe', id: 1 });
    asker.say({ ...request, id: 2 });
    for (const { told } of [asker, answers, other]) told.length = 0;
    const reply = { op: 'reply', to: asker.peer.number, failed: false, request: 2 };
    return { core, asker, answers, other, reply };
  }

  it('fails where the worker that has got it goes', () => {
    const { core, asker, answers, other } = ask();
    core.leave(other.peer);
    expect(asker.told).toEqual([]);
    core.leave(answers.peer);
    expect(asker.told).toEqual([{ t: 'refused', id: 2, why: 'the worker has exited' }]);
  });

  it('is answered once, by the worker that has got it', () => {
    const { core, asker, answers, other, reply } = ask();
    other.say(reply);
    expect(asker.told).toEqual([]);
    for (let times = 0; times < 2; times += 1) answers.say(reply);
    core.leave(answers.peer);
    expect(asker.told).toEqual([{ t: 'reply', id: 2, failed: false }]);
  });

  it.each<[string, (asked: ReturnType<typeof ask>) => void]>([
    ['has given up', ({ asker }) => asker.say({ op: 'cancel', id: 2 })],
    ['is gone', ({ core, asker }) => core.leave(asker.peer)],
  ])('is forgotten where the one who asked %s', (_, end) => {
    const asked = ask();
    end(asked);
    asked.answers.say(asked.reply);
    asked.core.leave(asked.answers.peer);
    expect(asked.asker.told).toEqual([]);
  });
});
