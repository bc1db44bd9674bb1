import { afterEach, expect, it, vi } from 'vitest';
import { ClusterCache, type ClusterCacheOptions } from '../../src/extras/cache/index.js';
import { HubClient } from '../../src/hub/client/hub-client.js';
import { HubCore, type Peer, type Said } from '../../src/hub/hub-core.js';
import { type FromHub, NO_BODY } from '../../src/hub/protocol.js';

const KEY = Symbol.for('nestjs-cluster.hub');
const holder = globalThis as { [KEY]?: HubClient | undefined };

afterEach(() => {
  holder[KEY] = undefined;
});

/** A process on a hub. What the hub answers arrives once the test says so. */
function connect(core: HubCore, options?: ClusterCacheOptions) {
  const answers: (() => void)[] = [];
  const deliver = (): void => {
    for (const each of answers.splice(0)) each();
  };
  holder[KEY] = new HubClient((events) => {
    const peer: Peer = {
      slot: 0,
      congested: false,
      unsentBytes: 0,
      send: (header: FromHub, body = NO_BODY) => {
        const own = Buffer.from(body);
        answers.push(() => events.frame(header, own));
      },
    };
    queueMicrotask(() => events.opened('a'));
    return { send: (header, body = NO_BODY) => (core.receive(peer, header as Said, body), true) };
  });
  return { cache: new ClusterCache(options), hub: holder[KEY], deliver };
}

const idle = () => new Promise((resolve) => setImmediate(resolve));

async function settled<T>(promise: Promise<T>, deliver: () => void): Promise<T> {
  let ended = false;
  const done = promise.finally(() => (ended = true));
  done.catch(() => {});
  for (let turns = 0; !ended && turns < 20; turns += 1) {
    deliver();
    await idle();
  }
  expect(ended).toBe(true);
  return done;
}

it('gives a call that begins later no value that was on its way to another before', async () => {
  const core = new HubCore();
  const one = connect(core);
  await one.hub.ready(100);
  await settled(one.cache.set('k', 'old'), one.deliver);
  const early = one.cache.getOrSet('k', () => 'computed');
  await idle(); // the hub has answered it
  const other = connect(core);
  await other.hub.ready(100);
  await settled(other.cache.set('k', 'new'), other.deliver);
  const late = one.cache.getOrSet('k', () => 'computed');
  expect(await settled(early, one.deliver)).toBe('old');
  expect(await settled(late, one.deliver)).toBe('new');
});

it('has one of a thousand calls of a process compute, and gives its value to all', async () => {
  const one = connect(new HubCore());
  await one.hub.ready(100);
  const compute = vi.fn(() => idle().then(() => 'computed'));
  const all = Promise.all(Array.from({ length: 1_000 }, () => one.cache.getOrSet('k', compute)));
  expect(new Set(await settled(all, one.deliver))).toEqual(new Set(['computed']));
  expect(compute).toHaveBeenCalledOnce();
});

it.each([
  ['larger than the cache', 'x'.repeat(100_000), undefined],
  ['to live for 0 ms', 'x', 0],
])('has a value that is %s computed once for those who wait for it', async (_, value, ttlMs) => {
  const core = new HubCore();
  const all = [1, 2, 3].map(() => connect(core, { maxBytes: 64 * 1_024 }));
  await Promise.all(all.map(({ hub }) => hub.ready(100)));
  const deliver = (): void => all.forEach((each) => each.deliver());
  let end = (): void => {};
  const computing = new Promise<void>((resolve) => (end = resolve));
  const compute = vi.fn(() => computing.then(() => value));
  const asked = Promise.all(all.map(({ cache }) => cache.getOrSet('k', compute, { ttlMs })));
  for (let turns = 0; turns < 10; turns += 1) {
    deliver();
    await idle();
  }
  end();
  expect(await settled(asked, deliver)).toEqual([value, value, value]);
  expect(compute).toHaveBeenCalledOnce();
  // It is not kept, and nobody has its lease any more.
  expect(await settled(all[1]!.cache.get('k'), deliver)).toBeUndefined();
  expect(
    await settled(
      all[2]!.cache.getOrSet('k', () => 'anew'),
      deliver,
    ),
  ).toBe('anew');
});
