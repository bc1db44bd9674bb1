import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import { ClusterCache, clusterCache } from '../../../src/cache/index.js';
import { dialInProcess, dialSocket } from '../../../src/client/dial.js';
import { HeldLocks, type LockName } from '../../../src/lock/held-locks.js';
import { HubClient, type LineEvents } from '../../../src/client/hub-client.js';
import { SharedCache } from '../../../src/cache/shared-cache.js';
import { NO_BODY } from '../../../src/wire/frame-socket.js';
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
    return (header) => takes && hub.open && sent.push(header) > 0;
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

/** A lock that the worker holds, by that grant. */
async function hold(
  client: ReturnType<typeof start>,
  held: HeldLocks,
  named: LockName,
  grant: number,
) {
  const acquired = held.acquire(named, 1_000);
  await vi.advanceTimersByTimeAsync(0);
  client.say({ t: 'granted', id: client.idOf('lock'), grant });
  return (await acquired)!;
}

describe('a process asks the hub', () => {
  it('and fails at its deadline, and tells the hub', async () => {
    const { hub, sent, idOf } = connected();
    const failed = expect(hub.ask(GET, 50)).rejects.toMatchObject({ failure: 'timeout' });
    await vi.advanceTimersByTimeAsync(51);
    await failed;
    expect(sent.at(-1)).toEqual({ op: 'cancel', id: idOf('get') });
    expect(Object.fromEntries(hub.outcomes)).toEqual({ 'get timeout': 1 });
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
    say({ t: 'hit', id: idOf('get') });
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

  it('and gives a lock back that came when nobody waited any more', async () => {
    const { hub, say, idOf, sent } = connected();
    const asked = hub.askPatiently((waitMs) => ({ op: 'lock', name: 'l', waitMs }), 100);
    const failed = expect(asked).rejects.toMatchObject({ failure: 'timeout' });
    await vi.advanceTimersByTimeAsync(101);
    await failed;
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
    const words = 'the hub is unavailable: read-only file system';
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
    ];
    for (const failure of failures) {
      expect(failure).toMatchObject({
        failure: 'unavailable',
        message: 'the hub is unavailable: read-only file system',
      });
    }
    expect([performance.now() - before, await hub.ready(3_000)]).toEqual([0, false]);
    open();
    const held = lock();
    await vi.advanceTimersByTimeAsync(0);
    say({ t: 'granted', id: idOf('lock'), grant: 7 });
    expect(await held).toMatchObject({ header: { t: 'granted' } });
  });
});

describe('a lock that is held', () => {
  it('is claimed from the next hub, and lost where that does not give it', async () => {
    const client = connected();
    const { hub, open, close, say, sent } = client;
    const held = new HeldLocks(hub);
    const limit = { name: 'tenant', max: 2, maxWaiting: 0 };
    const kept = await hold(client, held, { name: 'kept' }, 1);
    const lost = await hold(client, held, { name: 'lost', limit }, 2);
    sent.length = 0;
    close();
    open('second');
    const [first, second] = sent.filter((each) => each.op === 'lock');
    expect([first, second]).toMatchObject([
      { name: 'kept', reclaim: true },
      { name: 'lost', limit, reclaim: true },
    ]);
    say({ t: 'granted', id: first!.id, grant: 9 });
    say({ t: 'taken', id: second!.id });
    await vi.advanceTimersByTimeAsync(1);
    expect(lost.signal.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect([kept.grant, kept.token, kept.signal.aborted]).toEqual([9, 1, false]);
    expect(lost.signal.reason).toMatchObject({
      message:
        "the place in the limit 'tenant' for 'lost' was lost: the hub ended or did not respond",
    });
    held.release(kept);
    expect(sent.at(-1)).toEqual({ op: 'unlock', grant: 9 });
  });

  it('is given back to the next hub, where it ended while that was asked', async () => {
    const client = connected();
    const { hub, open, close, say, sent, idOf } = client;
    const held = new HeldLocks(hub);
    const lock = await hold(client, held, { name: 'l' }, 1);
    close();
    open('second');
    held.release(lock);
    say({ t: 'granted', id: idOf('lock'), grant: 9 });
    await vi.advanceTimersByTimeAsync(1);
    expect(sent.at(-1)).toEqual({ op: 'unlock', grant: 9 });
  });

  it('is lost 1.8 s after the connection, before the next hub gives it to others', async () => {
    const client = connected();
    const { hub, close } = client;
    const lock = await hold(client, new HeldLocks(hub), { name: 'l' }, 1);
    close();
    await vi.advanceTimersByTimeAsync(1_000);
    close(); // a second try failed: the deadline still counts from the first loss
    await vi.advanceTimersByTimeAsync(799);
    expect(lock.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(lock.signal.aborted).toBe(true);
  });

  it('is lost with the connection to a hub that goes on', async () => {
    const client = connected();
    const { hub, open, close } = client;
    const lock = await hold(client, new HeldLocks(hub), { name: 'l' }, 1);
    close();
    open();
    await vi.advanceTimersByTimeAsync(1);
    expect(lock.signal.aborted).toBe(true);
  });
});

describe('a shared cache', () => {
  it('waits with a delete for the hub after the one that ended', async () => {
    const { open, close, say, idOf, cache } = startCache();
    const deleted = cache.delete('a');
    close();
    await vi.advanceTimersByTimeAsync(1_000);
    open('second');
    await vi.advanceTimersByTimeAsync(20);
    say({ t: 'done', id: idOf('delete'), changed: 1 });
    expect(await deleted).toBe(true);
  });

  it('has set a value no sooner than the hub says so, and deletes it where that is unknown', async () => {
    const { open, close, say, idOf, sent, cache } = startCache();
    const slow = cache.set('a', 1, null);
    const settled = vi.fn();
    void slow.finally(settled);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(settled).not.toHaveBeenCalled();
    say({ t: 'done', id: idOf('set'), changed: 1 });
    expect(await slow).toBe(true);

    const lost = cache.set('a', 2, null);
    close();
    open('second');
    await vi.advanceTimersByTimeAsync(20);
    expect(sent.at(-1)).toMatchObject({ op: 'delete', key: 'a' });
    say({ t: 'done', id: idOf('delete'), changed: 1 });
    expect(await lost).toBe(false);
  });

  it('gives its lease back after 30 s, so that another worker computes', async () => {
    const { say, idOf, sent, cache } = startCache();
    void cache.getOrCompute('k', () => new Promise(() => {}), null, Infinity);
    say({ t: 'miss', id: idOf('get') });
    await vi.advanceTimersByTimeAsync(0);
    say({ t: 'granted', id: idOf('lease'), grant: 5 });
    await vi.advanceTimersByTimeAsync(29_999);
    expect(sent.at(-1)).toMatchObject({ op: 'lease' });
    await vi.advanceTimersByTimeAsync(1);
    expect(sent.at(-1)).toEqual({ op: 'unlock', grant: 5 });
  });

  it('computes within two seconds while the hub hangs', async () => {
    const { cache } = startCache();
    const computed = cache.getOrCompute('k', () => 'v', null, Infinity);
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
      Infinity,
    );
    const value = { at: new Date(5), bytes: Buffer.from('ab') };
    const works = cache.getOrCompute('k', () => value, null, Infinity);
    await expect(fails).rejects.toThrow('no database');
    expect((await works).value).toBe(value);
    const copy = await cache.get('k');
    expect(copy).toEqual(value);
    expect(copy).not.toBe(value);
    await cache.set('s', 'ünïcode', null);
    expect(await cache.get('s')).toBe('ünïcode');
  });

  it.each([
    [{ ttlMs: -1 }, /ttlMs: -1 is not allowed; expected a number, 0 or more/],
    [{ ttl: 5 }, /ttl is not allowed; known keys: ttlMs/],
    [60_000, /60000 is not allowed/],
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
    await expect(clusterCache().set('k', 1, NaN)).rejects.toThrow(/ttlMs: NaN is not allowed/);
  });

  it.each([
    [{ maxBytes: 10 }, /maxBytes: 10 is not allowed; expected a whole number from 65536 to \d+/],
    [{ maxbytes: 1e9 }, /maxbytes is not allowed; known keys: maxBytes, name/],
    [{ name: '' }, /name: "" is not allowed; expected a string of 1 to 256 characters/],
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
