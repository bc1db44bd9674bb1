import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { ClusterCache, type ClusterCacheOptions } from '../../../src/cache/index.js';
import { HubCore } from '../../../src/thread/hub-core.js';
import { connect, enterWorker, forgetHub, idle } from '../support/hub-workers.js';

afterEach(forgetHub);

/** Connects a process to a hub. The hub's answers arrive only when the test calls `deliver()`. */
function connectCache(core: HubCore, options?: ClusterCacheOptions) {
  const { hub, state, deliver } = connect(core, 0);
  enterWorker(hub);
  state.holding = true;
  return {
    cache: new ClusterCache(options),
    hub,
    deliver: () => {
      deliver();
      state.holding = true;
    },
  };
}

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
  const one = connectCache(core);
  await one.hub.ready(100);
  await settled(one.cache.set('k', 'old'), one.deliver);
  const early = one.cache.getOrSet('k', () => 'computed');
  await idle(); // the hub has answered it
  const other = connectCache(core);
  await other.hub.ready(100);
  await settled(other.cache.set('k', 'new'), other.deliver);
  const late = one.cache.getOrSet('k', () => 'computed');
  expect(await settled(early, one.deliver)).toBe('old');
  expect(await settled(late, one.deliver)).toBe('new');
});

it('has one of a thousand calls of a process compute, and gives its value to all', async () => {
  const one = connectCache(new HubCore());
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
  const all = [1, 2, 3].map(() => connectCache(core, { maxBytes: 64 * 1_024 }));
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
  expect(await askFor(all[2]!.cache, 'anew', deliver)).toBe('anew');
});

/** Asks for the key `k`. Nobody else computes it. */
const askFor = (cache: ClusterCache, value: string, deliver: () => void) =>
  settled(
    cache.getOrSet('k', () => value),
    deliver,
  );

/** Workers of one hub; `turn()` lets everything arrive that was sent. */
async function workers(count: number) {
  const core = new HubCore();
  const all = Array.from({ length: count }, () => connectCache(core));
  await Promise.all(all.map(({ hub }) => hub.ready(100)));
  const deliver = (): void => all.forEach((each) => each.deliver());
  const turn = async (): Promise<void> => {
    for (let turns = 0; turns < 10; turns += 1) {
      deliver();
      await idle();
    }
  };
  return { caches: all.map(({ cache }) => cache), deliver, turn };
}

/** A computation that ends when the test says so. */
function computation(value: string) {
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  return { compute: vi.fn(() => ended.then(() => value)), end };
}

it.each<[string, (cache: ClusterCache) => Promise<unknown>, string | undefined]>([
  ['deleted', (cache) => cache.delete('k'), undefined],
  ['set', (cache) => cache.set('k', 'newer'), 'newer'],
  ['cleared', (cache) => cache.clear(), undefined],
])('does not keep what was computed while its key was %s', async (_, change, left) => {
  const { caches, deliver, turn } = await workers(2);
  const [one, other] = caches as [ClusterCache, ClusterCache];
  const old = computation('old');
  const computed = one.getOrSet('k', old.compute);
  await turn();
  expect(old.compute).toHaveBeenCalledOnce();
  await settled(change(other), deliver);
  old.end();
  expect(await settled(computed, deliver)).toBe('old'); // it was asked for before
  expect(await settled(other.get('k'), deliver)).toBe(left);
  expect(await askFor(one, 'again', deliver)).toBe(left ?? 'again');
});

it('computes anew for those who ask after a delete, at once, also where others have waited', async () => {
  const { caches, deliver, turn } = await workers(3);
  const [one, waits, other] = caches as [ClusterCache, ClusterCache, ClusterCache];
  const old = computation('old');
  const early = one.getOrSet('k', old.compute);
  await turn();
  const waiting = waits.getOrSet('k', () => 'new');
  await turn();
  await settled(other.delete('k'), deliver);
  // The one that waits has the lease now, and its value is kept.
  expect(await settled(waiting, deliver)).toBe('new');
  expect(await askFor(other, 'third', deliver)).toBe('new');
  old.end();
  expect(await settled(early, deliver)).toBe('old');
  expect(await settled(other.get('k'), deliver)).toBe('new');
});

it('gives nobody a value that was being computed when its key was deleted, before he asked', async () => {
  const { caches, deliver, turn } = await workers(2);
  const [one, other] = caches as [ClusterCache, ClusterCache];
  const old = computation('old');
  const early = one.getOrSet('k', old.compute);
  await turn();
  await settled(other.delete('k'), deliver);
  const compute = vi.fn(() => 'new');
  const late = Promise.all([one.getOrSet('k', compute), one.getOrSet('k', compute)]);
  await turn();
  old.end();
  expect(await settled(early, deliver)).toBe('old');
  expect(await settled(late, deliver)).toEqual(['new', 'new']);
  expect(compute).toHaveBeenCalledOnce();
});

it('has the next one compute after 30 s in the worker of a computation that never ends', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { caches, deliver, turn } = await workers(1);
  const [cache] = caches as [ClusterCache];
  void cache.getOrSet('k', () => new Promise(() => {}));
  await turn();
  const next = vi.fn(() => 'next');
  const waiting = Promise.all([cache.getOrSet('k', next), cache.getOrSet('k', next)]);
  await turn();
  await vi.advanceTimersByTimeAsync(29_000);
  await turn();
  expect(next).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await settled(waiting, deliver)).toEqual(['next', 'next']);
  expect(next).toHaveBeenCalledOnce();
  expect(await settled(cache.get('k'), deliver)).toBe('next');
});
