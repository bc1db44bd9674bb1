import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import { setCurrentLink } from '../support/current-link.js';
import { ClusterCache, clusterCache } from '../../../src/cache/index.js';
import { ClusterLock } from '../../../src/lock/index.js';
import { dialSocket } from '../../../src/client/dial-socket.js';
import { HeldLocks } from '../../../src/lock/held-locks.js';
import { RECLAIM_MS } from '../../../src/thread/hub-server.js';
import { HubChannels } from '../../../src/client/hub-channels.js';
import { HubClient } from '../../../src/client/hub-client.js';
import { dialInProcess } from '../../../src/client/in-process.js';
import type { LineEvents } from '../../../src/client/hub-client.interface.js';
import { SharedCache } from '../../../src/cache/shared-cache.js';
import { NO_BODY } from '../../../src/wire/limits.js';
import type { FromHub, ToHub } from '../../../src/wire/protocol.js';
import { enterWorker, forgetHub } from '../support/hub-workers.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  forgetHub();
});

/** A client, and the hub's end of its line. */
function start() {
  const sent: ToHub[] = [];
  let events!: LineEvents;
  let takes = true;
  const hub: HubClient = new HubClient((given) => {
    events = given;
    return { send: (header) => takes && hub.open && sent.push(header) > 0 };
  });
  enterWorker(hub);
  const idOf = (op: ToHub['op']) =>
    (sent.findLast((each) => each.op === op) as { id: number } | undefined)?.id ?? -1;
  return {
    hub,
    sent,
    idOf,
    open: (instance = 'first') => events.opened(instance),
    close: () => events.closed(),
    refuse: (why: string) => events.unavailable(why),
    say: (header: FromHub, body = NO_BODY) => events.frame(header, body),
    takesNothing: () => (takes = false),
    takesAgain: () => {
      takes = true;
      events.drained();
    },
  };
}

/** A client that is connected. */
function connected() {
  const client = start();
  client.open();
  return client;
}

/** The same with a cache. */
const startCache = () => ({ ...connected(), cache: new SharedCache(undefined, 'default') });

/** The hub is in this process, and time is real. */
function inProcess(): void {
  vi.useRealTimers();
  enterWorker(new HubClient(dialInProcess));
}

const GET = { op: 'get', cache: 'c', key: 'k' } as const;

describe('a process asks the hub', () => {
  it('and fails at its deadline; then nobody waits for it until it has said something', async () => {
    const { hub, say, idOf } = connected();
    const first = expect(hub.ask(GET, 50)).rejects.toMatchObject({ failure: 'timeout' });
    await vi.advanceTimersByTimeAsync(51);
    await first;
    await expect(hub.ask(GET, 50)).rejects.toMatchObject({ failure: 'timeout' });
    say({ t: 'miss', id: idOf('get') });
    const third = hub.ask(GET, 50);
    say({ t: 'miss', id: idOf('get') });
    await expect(third).resolves.toMatchObject({ header: { t: 'miss' } });
    expect(Object.fromEntries(hub.outcomes)).toEqual({ 'get timeout': 2, 'get ok': 1 });
  });

  it('and reads an answer that came while its event loop was busy, before it gives up', async () => {
    const { hub, say, idOf } = connected();
    const asked = hub.ask(GET, 50);
    // The timer is due, and the answer lies in the socket: timers come first.
    vi.advanceTimersToNextTimer();
    say({ t: 'miss', id: idOf('get') });
    await vi.advanceTimersByTimeAsync(1);
    await expect(asked).resolves.toMatchObject({ header: { t: 'miss' } });
  });

  it('and fails at once where the connection is lost, or the hub reads nothing', async () => {
    const { hub, open, close, takesNothing } = connected();
    const lost = expect(hub.ask(GET, 1_000)).rejects.toMatchObject({ failure: 'lost' });
    close();
    await lost;
    await expect(hub.ask(GET, 1_000)).rejects.toMatchObject({ failure: 'lost' });
    open();
    takesNothing();
    await expect(hub.ask(GET, 1_000)).rejects.toMatchObject({ failure: 'lost' });
  });

  it('and waits for the first connection, which starts a thread', async () => {
    const { hub, open, say, idOf } = start();
    const asked = hub.ask(GET, 1_000);
    await vi.advanceTimersByTimeAsync(500);
    open();
    await vi.advanceTimersByTimeAsync(0);
    say({ t: 'hit', id: idOf('get'), form: 's' });
    await expect(asked).resolves.toMatchObject({ header: { t: 'hit' } });
  });

  it('and asks again for a lock where the hub was lost', async () => {
    const { hub, open, close, say, idOf, sent } = connected();
    const asked = hub.askPatiently((waitMs) => ({ op: 'lock', name: 'l', waitMs }), 5_000);
    close();
    await vi.advanceTimersByTimeAsync(1_000);
    open('second');
    await vi.advanceTimersByTimeAsync(20);
    expect(sent.at(-1)).toMatchObject({ op: 'lock', name: 'l' });
    expect((sent.at(-1) as { waitMs: number }).waitMs).toBeLessThan(4_100);
    say({ t: 'granted', id: idOf('lock'), grant: 7 });
    await expect(asked).resolves.toMatchObject({ header: { grant: 7 } });
  });

  it('and gives up what may take long at its time, also before the first connection', async () => {
    const { hub, open, sent } = start();
    const early = hub.askUntil({ op: 'lease', cache: 'c', key: 'k', waitMs: 1_000 }, 1_000);
    await vi.advanceTimersByTimeAsync(500);
    open();
    const get = hub.ask(GET, 5_000);
    const answered = vi.fn();
    void get.then(answered, answered);
    await vi.advanceTimersByTimeAsync(600);
    const late = Symbol('late');
    expect(await Promise.race([early, Promise.resolve(late)])).toBeUndefined();
    const lease = sent.find(({ op }) => op === 'lease') as { id: number };
    expect(sent.filter(({ op }) => op === 'cancel')).toEqual([{ op: 'cancel', id: lease.id }]);
    expect(answered).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(5_000);
    await expect(get).rejects.toMatchObject({ failure: 'timeout' });
    expect(Object.fromEntries(hub.outcomes)).toEqual({ 'get timeout': 1 });
  });

  it('and gives a lock back that came when nobody waited any more', async () => {
    const { hub, say, idOf, sent } = connected();
    const asked = hub.askPatiently((waitMs) => ({ op: 'lock', name: 'l', waitMs }), 100);
    await vi.advanceTimersByTimeAsync(101);
    await expect(asked).resolves.toBeUndefined();
    expect(sent.at(-1)).toEqual({ op: 'cancel', id: idOf('lock') });
    say({ t: 'granted', id: idOf('lock'), grant: 7 });
    expect(sent.at(-1)).toEqual({ op: 'unlock', grant: 7 });
  });
});

describe('a worker that cannot have a hub', () => {
  it('says why once, however often it tries again, and once more if that is another reason', async () => {
    const warn = vi.fn();
    let reason = 'read-only file system';
    const find = vi.fn(() => Promise.reject(new Error(reason)));
    const hub = new HubClient(dialSocket(find, 0, warn));
    await vi.advanceTimersByTimeAsync(10_000);
    const words = 'there is no hub: read-only file system';
    await expect(hub.ask(GET, 1_000)).rejects.toMatchObject({
      failure: 'unavailable',
      message: words,
    });
    expect(find.mock.calls.length).toBeGreaterThan(5);
    expect(warn.mock.calls).toEqual([[expect.stringContaining(words)]]);
    reason = 'no space';
    await vi.advanceTimersByTimeAsync(10_000);
    expect(warn).toHaveBeenCalledTimes(2);
  });

  it('fails at once with the reason whatever it asks, and asks again once there is one', async () => {
    const { hub, refuse, open, say, idOf } = start();
    const early = hub.ask(GET, 1_000).catch((error: Error) => error);
    refuse('read-only file system');
    const lock = () =>
      hub
        .askPatiently((waitMs) => ({ op: 'lock', name: 'l', waitMs }), 10_000)
        .catch((error: Error) => error);
    const before = performance.now();
    const failures = [
      await early,
      await lock(),
      await hub.ask(GET, 250).catch((error: Error) => error),
      await hub
        .askUntil({ op: 'lease', cache: 'c', key: 'k', waitMs: 250 }, 250)
        .catch((error: Error) => error),
    ];
    for (const failure of failures) {
      expect(failure).toMatchObject({
        failure: 'unavailable',
        message: 'there is no hub: read-only file system',
      });
    }
    expect([performance.now() - before, await hub.ready(3_000)]).toEqual([0, false]);
    open();
    const held = lock();
    await vi.advanceTimersByTimeAsync(0);
    say({ t: 'granted', id: idOf('lock'), grant: 7 });
    expect(await held).toMatchObject({ header: { t: 'granted' } });
  });

  it('computes a value once for all who ask for it together', async () => {
    const { refuse } = start();
    refuse('read-only file system');
    const cache = new ClusterCache();
    const compute = vi.fn(async () => 'v');
    const ask = () => cache.getOrSet('k', compute);
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(['v', 'v', 'v']);
    expect(compute).toHaveBeenCalledTimes(1);
  });

  it('is not waited for by a message to other workers', async () => {
    const { hub, refuse } = start();
    const channels = new HubChannels(hub);
    channels.join('chat', 'me', { said: vi.fn(), left: vi.fn(), joined: vi.fn() });
    refuse('read-only file system');
    const echo = vi.fn();
    channels.say('me', Buffer.from('hello'), { echo });
    expect(echo.mock.calls).toHaveLength(1);
  });

  it('waits for no time before now', async () => {
    const warned = vi.fn();
    process.on('warning', warned);
    onTestFinished(() => void process.off('warning', warned));
    vi.useRealTimers();
    const { hub } = start();
    await hub.askUntil({ op: 'lease', cache: 'c', key: 'k', waitMs: 5 }, 5).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(warned).not.toHaveBeenCalled();
  });
});

describe('a lock that is held', () => {
  it('is claimed from the next hub, and lost where that does not give it', async () => {
    const { hub, open, close, say, sent } = connected();
    const held = new HeldLocks(hub);
    const limit = { name: 'tenant', max: 2, maxWaiting: 0 };
    const kept = held.add({ name: 'kept' }, 1);
    const lost = held.add({ name: 'lost', limit }, 2);
    close();
    open('second');
    const [first, second] = sent.filter((each) => each.op === 'lock');
    expect([first, second]).toMatchObject([
      { name: 'kept', reclaim: true },
      { name: 'lost', limit, reclaim: true },
    ]);
    say({ t: 'granted', id: first!.id, grant: 9 });
    say({ t: 'expired', id: second!.id });
    await vi.advanceTimersByTimeAsync(1);
    expect(lost.signal.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect([kept.grant, kept.token, kept.signal.aborted]).toEqual([9, 1, false]);
    expect(lost.signal.reason).toMatchObject({
      message: "the place in the limit 'tenant' for 'lost' was lost: the hub ended or hung",
    });
    held.release(kept);
    expect(sent.at(-1)).toEqual({ op: 'unlock', grant: 9 });
  });

  it('is given back to the next hub, where it ended while that was asked', async () => {
    const { hub, open, close, say, sent, idOf } = connected();
    const held = new HeldLocks(hub);
    const lock = held.add({ name: 'l' }, 1);
    close();
    open('second');
    held.release(lock);
    say({ t: 'granted', id: idOf('lock'), grant: 9 });
    await vi.advanceTimersByTimeAsync(1);
    expect(sent.at(-1)).toEqual({ op: 'unlock', grant: 9 });
  });

  it('is lost 1.8 s after the connection, before the next hub gives it to others', async () => {
    const { hub, close } = connected();
    const lock = new HeldLocks(hub).add({ name: 'l' }, 1);
    close();
    await vi.advanceTimersByTimeAsync(1_000);
    close(); // a second try failed: the deadline still counts from the first loss
    await vi.advanceTimersByTimeAsync(799);
    expect(lock.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(lock.signal.aborted).toBe(true);
    expect(1_800).toBeLessThan(RECLAIM_MS);
  });

  it('is lost with the connection to a hub that goes on', async () => {
    const { hub, open, close } = connected();
    const lock = new HeldLocks(hub).add({ name: 'l' }, 1);
    close();
    open();
    await vi.advanceTimersByTimeAsync(1);
    expect(lock.signal.aborted).toBe(true);
  });
});

describe('a shared cache', () => {
  it.each(['first', 'second'])(
    'deletes what it could not before it is asked for anything, and says so: of the %s hub',
    async (instance) => {
      const { open, close, sent } = start();
      open();
      const cache = new SharedCache(undefined, 'default');
      await vi.advanceTimersByTimeAsync(0);
      close();
      const failures = Promise.all([
        expect(cache.delete('a')).rejects.toThrow(
          /delete\(\) of 'a' of the cache 'default' is not confirmed: the hub has not answered within 5000 ms/,
        ),
        expect(cache.set('b', 'new', null)).rejects.toMatchObject({
          code: 'CLUSTER_CACHE_UNCONFIRMED',
        }),
      ]);
      await vi.advanceTimersByTimeAsync(5_000);
      await failures;
      sent.length = 0;
      open(instance);
      void cache.get('a');
      expect(sent).toMatchObject([
        { op: 'delete', key: 'a' },
        { op: 'delete', key: 'b' },
        { op: 'get', key: 'a' },
      ]);
    },
  );

  it('waits with a delete for the hub after the one that ended', async () => {
    const { open, close, say, idOf, cache } = startCache();
    const deleted = cache.delete('a');
    close();
    await vi.advanceTimersByTimeAsync(1_000);
    open('second');
    await vi.advanceTimersByTimeAsync(20);
    say({ t: 'done', id: idOf('delete'), changed: 1, evicted: 0 });
    expect(await deleted).toBe(true);
  });

  it('has set a value no sooner than the hub says so, and deletes it where that is unknown', async () => {
    const { open, close, say, idOf, sent, cache } = startCache();
    const slow = cache.set('a', 1, null);
    const settled = vi.fn();
    void slow.finally(settled);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(settled).not.toHaveBeenCalled();
    say({ t: 'done', id: idOf('set'), changed: 1, evicted: 0 });
    expect(await slow).toBe(true);

    const lost = cache.set('a', 2, null);
    close();
    open('second');
    await vi.advanceTimersByTimeAsync(20);
    expect(sent.at(-1)).toMatchObject({ op: 'delete', key: 'a' });
    say({ t: 'done', id: idOf('delete'), changed: 1, evicted: 0 });
    expect(await lost).toBe(false);
  });

  it('rejects at once what changes a value where there can be no hub, as a lock does, and computes', async () => {
    const { refuse } = start();
    const cache = new SharedCache(undefined, 'default');
    refuse('read-only file system');
    await expect(cache.set('k', 1, null)).rejects.toThrow(/there is no hub: read-only file system/);
    await expect(cache.delete('k')).rejects.toThrow(/there is no hub: read-only file system/);
    await expect(cache.clear()).rejects.toThrow(/there is no hub: read-only file system/);
    await expect(new ClusterLock().runExclusive('l', vi.fn())).rejects.toThrow(
      "the lock 'l' cannot be asked for: there is no hub: read-only file system",
    );
    expect((await cache.getOrCompute('k', () => 'v', null)).value).toBe('v');
  });

  it('waits for nobody else where the time for that is over, and still computes as the only one', async () => {
    const { say, sent, idOf, cache } = startCache();
    const found = cache.getOrCompute('k', () => 'v', null, performance.now() - 1);
    say({ t: 'miss', id: idOf('get') });
    await vi.advanceTimersByTimeAsync(0);
    expect(sent.at(-1)).toMatchObject({ op: 'lease', waitMs: 0 });
    say({ t: 'granted', id: idOf('lease'), grant: 5 });
    await vi.advanceTimersByTimeAsync(0);
    expect(sent.at(-1)).toMatchObject({ op: 'fill', grant: 5 });
    say({ t: 'done', id: idOf('fill'), changed: 1, evicted: 0 });
    expect((await found).value).toBe('v');
  });

  it('clears all once the hub reads again, where it could not clear a part', async () => {
    const { say, sent, idOf, takesNothing, takesAgain, cache } = startCache();
    takesNothing();
    const failed = expect(cache.clear('some')).rejects.toThrow(/clear\(\) of the cache 'default'/);
    await vi.advanceTimersByTimeAsync(5_100);
    await failed;
    takesAgain();
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toEqual([{ op: 'clear', cache: 'default', id: idOf('clear') }]);
    say({ t: 'done', id: idOf('clear'), changed: 0, evicted: 0 });
    const cleared = cache.clear('some');
    await vi.advanceTimersByTimeAsync(4_000); // a large cache takes its time
    say({ t: 'done', id: idOf('clear'), changed: 0, evicted: 0 });
    await cleared;
    takesAgain();
    expect(sent.slice(1)).toMatchObject([{ op: 'clear', prefix: 'some' }]);
  });

  it('says once why the hub refuses a value, and takes it for deleted', async () => {
    const { open, close, say, idOf, sent } = connected();
    const warn = vi.fn();
    setCurrentLink({ warn } as never);
    onTestFinished(() => setCurrentLink(undefined));
    const cache = new SharedCache({ name: 'c' }, 'default');
    for (let n = 0; n < 2; n += 1) {
      const kept = cache.set('k', 1, null);
      await vi.advanceTimersByTimeAsync(0);
      say({ t: 'refused', id: idOf('set'), why: 'there are too many caches' });
      await vi.advanceTimersByTimeAsync(0);
      say({ t: 'refused', id: idOf('delete'), why: 'there are too many caches' });
      expect(await kept).toBe(false);
    }
    expect(warn.mock.calls).toEqual([
      ["the cache 'c' does not keep a value: there are too many caches"],
    ]);
    close();
    sent.length = 0;
    open();
    expect(sent).toEqual([]);
  });

  it('misses a value that V8 has written and cannot read', async () => {
    const { say, idOf } = connected();
    const value = new SharedCache(undefined, 'default').get('k');
    say({ t: 'hit', id: idOf('get'), form: 'v' }, Buffer.from('no value'));
    expect(await value).toBeUndefined();
  });

  it('gives its lease back where the value is too large to be kept', async () => {
    const { say, idOf, sent, cache } = startCache();
    const computed = cache.getOrCompute('k', () => Buffer.alloc(2 ** 24 + 1), null);
    say({ t: 'miss', id: idOf('get') });
    await vi.advanceTimersByTimeAsync(0);
    say({ t: 'granted', id: idOf('lease'), grant: 5 });
    await vi.advanceTimersByTimeAsync(0);
    expect((await computed).value).toHaveLength(2 ** 24 + 1);
    expect(sent.at(-1)).toEqual({ op: 'unlock', grant: 5 });
  });

  it('gives its lease back after 30 s, so that another worker computes', async () => {
    const { say, idOf, sent, cache } = startCache();
    void cache.getOrCompute('k', () => new Promise(() => {}), null);
    say({ t: 'miss', id: idOf('get') });
    await vi.advanceTimersByTimeAsync(0);
    say({ t: 'granted', id: idOf('lease'), grant: 5 });
    await vi.advanceTimersByTimeAsync(29_999);
    expect(sent.at(-1)).toMatchObject({ op: 'lease' });
    await vi.advanceTimersByTimeAsync(1);
    expect(sent.at(-1)).toEqual({ op: 'unlock', grant: 5 });
  });

  it('computes without the hub where that does not answer, and keeps nothing', async () => {
    const { open, close, sent } = connected();
    close();
    const cache = new SharedCache(undefined, 'default');
    const { value, fresh } = await cache.getOrCompute('k', () => 'v', null);
    open();
    expect([value, await fresh, sent]).toEqual(['v', false, []]);
  });

  it('computes within two seconds while the hub hangs', async () => {
    const { cache } = startCache();
    const computed = cache.getOrCompute('k', () => 'v', null);
    await vi.advanceTimersByTimeAsync(2_000);
    const late = Symbol('late');
    expect(await Promise.race([computed, Promise.resolve(late)])).toMatchObject({ value: 'v' });
  });

  it('has the next one compute where the first one fails, and copies values', async () => {
    inProcess();
    const cache = new SharedCache(undefined, 'default');
    const fails = cache.getOrCompute(
      'k',
      async () => {
        await Promise.resolve();
        throw new Error('no database');
      },
      null,
    );
    const value = { at: new Date(5), bytes: Buffer.from('ab') };
    const works = cache.getOrCompute('k', () => value, null);
    await expect(fails).rejects.toThrow('no database');
    expect((await works).value).toBe(value);
    const copy = await cache.get('k');
    expect(copy?.value).toMatchObject({ at: value.at });
    expect(copy?.value).not.toBe(value);
    await cache.set('s', 'ünïcode', null);
    expect(await cache.get('s')).toEqual({ value: 'ünïcode' });
  });

  it.each([NaN, -1, '5' as never])('refuses a time to live of %s', async (ttlMs) => {
    inProcess();
    const [cache, store] = [new ClusterCache(), clusterCache()];
    const compute = vi.fn();
    const refusal = /ttlMs: .* is not allowed; expected 0 or more/;
    await expect(store.set('k', 1, ttlMs)).rejects.toThrow(refusal);
    await expect(cache.set('k', 1, { ttlMs })).rejects.toThrow(refusal);
    await expect(cache.getOrSet('k', compute, { ttlMs })).rejects.toThrow(refusal);
    expect(compute).not.toHaveBeenCalled();
    expect([await cache.get('k'), await store.get('k')]).toEqual([undefined, undefined]);
  });

  it.each([
    [{ ttl: 5 }, /ttl: 5 is not allowed; no such option here; known are ttlMs/],
    [null, /null is not allowed; expected an object with ttlMs/],
    [60_000, /60000 is not allowed; expected an object with ttlMs/],
  ])('refuses the options %o of a value', async (options, message) => {
    inProcess();
    const cache = new ClusterCache();
    const compute = vi.fn();
    const refused = { code: 'CLUSTER_CONFIGURATION', message: expect.stringMatching(message) };
    await expect(cache.set('k', 1, options as never)).rejects.toMatchObject(refused);
    const computed = cache.getOrSet('k', compute, options as never);
    await expect(computed).rejects.toMatchObject(refused);
    expect(compute).not.toHaveBeenCalled();
    expect(await cache.get('k')).toBeUndefined();
  });

  it('keeps a value that lives without end until others need its room', async () => {
    inProcess();
    const cache = new SharedCache(undefined, 'default');
    await cache.set('k', 1, Infinity);
    expect(await cache.get('k')).toEqual({ value: 1 });
  });

  it.each([
    [{ maxBytes: 10 }, /maxBytes: 10 is not allowed; expected a whole number from 65536 to \d+/],
    [{ maxBytes: 2 ** 50 }, /maxBytes: 1125899906842624 is not allowed; expected .* the memory/],
    [{ maxbytes: 1e9 }, /maxbytes: 1000000000 is not allowed; no such option here; known are/],
    [{ name: '' }, /name: "" is not allowed; expected a name of 1 to 256 characters/],
    [null, /null is not allowed; expected an object with maxBytes, name/],
  ])('refuses the options %o', (options, message) => {
    for (const make of [
      () => clusterCache(options as never),
      () => new ClusterCache(options as never),
    ]) {
      expect(make).toThrow(ClusterConfigurationError);
      expect(make).toThrow(message);
    }
  });
});
