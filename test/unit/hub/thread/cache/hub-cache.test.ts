import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Blocks } from '../../../../../src/hub/thread/storage/blocks.js';
import { LruCache } from '../../../../../src/hub/thread/cache/lru-cache.js';

/**
 * Two keys have the same bytes: one key in Latin-1, the other in UTF-16. The last two keys are lone
 * surrogates, which are not whole characters.
 */
const keys = fc.constantFrom('a', 'b', '\u043d', '=\u0004', '\ud800', '\ud801');
const step = fc.oneof(
  fc.record({ do: fc.constant('get' as const), key: keys }),
  fc.record({
    do: fc.constant('set' as const),
    key: keys,
    bytes: fc.nat(1_000),
    ttlMs: fc.option(fc.nat(30)),
  }),
  fc.record({ do: fc.constant('delete' as const), key: keys }),
  fc.record({ do: fc.constant('clear' as const) }),
  fc.record({ do: fc.constant('sweep' as const) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.nat(20) }),
);

/** A block of 256 bytes, and what it takes to find it. */
const BLOCK = 268;
const ROOM = 10 * BLOCK;
const MIB = 1_024 * 1_024;
const BYTES = randomBytes(200_000);

/** The bytes that an entry takes, if its form has one byte. */
function roomOf(key: string, value: Buffer): number {
  return BLOCK * Math.ceil((40 + 2 * key.length + 1 + value.length) / 256);
}

describe('a cache of the hub', () => {
  it('gives what was set last, for as long as it was to live, and removes what was used longest ago', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const cache = new LruCache(ROOM);
        // The entry that was used most recently is the last.
        let model: { key: string; value: Buffer; until: number }[] = [];
        let now = 0;
        let lastByte = 0;
        const size = () => model.reduce((sum, { key, value }) => sum + roomOf(key, value), 0);
        const without = (key: string) => model.filter((each) => each.key !== key);
        for (const each of steps) {
          switch (each.do) {
            case 'get': {
              const known = model.find(({ key }) => key === each.key);
              const alive = known !== undefined && known.until > now;
              expect(cache.has(each.key, now)).toBe(alive);
              const found = cache.get(each.key, now);
              expect(found?.form).toBe(alive ? 'b' : undefined);
              expect(alive ? found!.value.equals(known.value) : found).toBe(alive || undefined);
              model = alive ? [...without(each.key), known] : without(each.key);
              break;
            }
            case 'set': {
              lastByte = (lastByte + 37) % 256;
              const value = BYTES.subarray(lastByte, lastByte + each.bytes);
              const evicted = cache.set(each.key, { form: 'b', value }, each.ttlMs, now);
              model = without(each.key);
              if (each.ttlMs !== 0) {
                model.push({ key: each.key, value, until: now + (each.ttlMs ?? Infinity) });
              }
              const before = model.length;
              while (size() > ROOM) model.shift();
              expect(evicted).toBe(before - model.length);
              break;
            }
            case 'delete': {
              const known = model.find(({ key }) => key === each.key);
              expect(cache.delete(each.key, now)).toBe(known !== undefined && known.until > now);
              model = without(each.key);
              break;
            }
            case 'clear':
              cache.clear();
              model = [];
              break;
            case 'sweep':
              cache.sweep(now);
              model = model.filter(({ until }) => until > now);
              break;
            case 'pass':
              now += each.ms;
          }
          expect(cache.bytes).toBe(size());
          expect(cache.size).toBe(model.length);
        }
      }),
      { numRuns: 300 },
    );
  });

  /** The bytes left after a collection. V8's own threads update that figure with some delay. */
  const settledUse = async (isEnough: (bytes: number) => boolean): Promise<number> => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    let least = Infinity;
    for (let looks = 0; looks < 3 || (looks < 100 && !isEnough(least)); looks += 1) {
      collect();
      await delay(20);
      least = Math.min(least, used());
    }
    return least;
  };
  const used = () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };

  it.each([20, 300, 64 * 1_024])(
    'takes as much memory as it says, with values of %i bytes',
    async (bytes) => {
      const maxBytes = 16 * MIB;
      const before = await settledUse(() => true);
      const cache = new LruCache(maxBytes);
      const count = (1.2 * maxBytes) / (bytes + 256);
      // Keys and forms as they come out of JSON: each is a string of its own.
      for (let n = 0; n < count; n += 1) {
        const { key, form } = JSON.parse(`{"key":"some:prefix:${n}","form":"s"}`);
        cache.set(key, { form, value: Buffer.alloc(bytes, n) }, null, 0);
      }
      expect(cache.bytes).toBeGreaterThan(0.98 * maxBytes);
      const most = before + 1.05 * maxBytes;
      expect(await settledUse((bytes) => bytes < most)).toBeLessThan(most);
      expect(cache.size).toBeGreaterThan(0);
    },
  );

  it('does not keep a value that is larger than itself, nor the one that it was to replace', () => {
    const cache = new LruCache(ROOM);
    cache.set('a', { form: 'b', value: Buffer.alloc(10) }, null, 0);
    expect(cache.set('a', { form: 'b', value: Buffer.alloc(ROOM) }, null, 0)).toBe(0);
    expect(cache.get('a', 0)).toBeUndefined();
  });

  it('makes room when it is bounded anew, and finds what it holds', () => {
    const cache = new LruCache(2 * BLOCK);
    const set = (key: string) =>
      cache.set(key, { form: 'b', value: Buffer.alloc(100, key) }, null, 0);
    const held = () =>
      ['a', 'b', 'c', 'd', 'e', 'f', 'g'].filter((key) => cache.has(key, 0)).join('');
    const evicted = ['a', 'b', 'c'].map(set);
    expect(evicted).toEqual([0, 0, 1]);
    expect(cache.resize(64 * BLOCK)).toBe(0);
    for (const key of 'defg') expect(set(key)).toBe(0);
    expect(held()).toBe('bcdefg');
    expect(cache.resize(3 * BLOCK)).toBe(3);
    expect(held()).toBe('efg');
    expect(cache.get('e', 0)?.value).toEqual(Buffer.alloc(100, 'e'));
  });

  it('forgets the keys that begin as they should, whatever their characters are', () => {
    const cache = new LruCache(4 * MIB);
    // A prefix of one byte a character, and a prefix of two. The low bytes of both are the same.
    const [narrow, wide] = ['aa', '\u0461\u0461'];
    const heads = [narrow, wide, 'a', '\u0461', 'b', ''];
    const names = heads.flatMap((head) =>
      ['', '1', '\u0462', 'x'.repeat(600)].map((tail) => head + tail),
    );
    const set = () => {
      for (const key of names) cache.set(key, { form: 'b', value: BYTES.subarray(0, 10) }, null, 0);
      for (let n = 0; n < 5_000; n += 1)
        cache.set(`b${n}`, { form: 'b', value: BYTES.subarray(0, 10) }, null, 0);
    };
    for (const prefix of [narrow, wide, '']) {
      set();
      let parts = 0;
      let next = 0;
      do next = cache.clearPrefix(prefix, next);
      while ((parts += 1) < 1_000 && next !== 0);
      expect(parts).toBeGreaterThan(1);
      for (const key of new Set(names)) expect(cache.has(key, 0)).toBe(!key.startsWith(prefix));
      expect(cache.has('b4999', 0)).toBe(prefix !== '');
    }
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
  });

  it('tells its keys in bounded parts, each at least once though it grows meanwhile', () => {
    const cache = new LruCache(4 * MIB);
    const value = BYTES.subarray(0, 10);
    const names = Array.from({ length: 1_500 }, (_, n) =>
      `${n % 2 === 0 ? 'a' : '\u0434'}${n}`.padEnd(700, '.'),
    );
    for (const key of names) cache.set(key, { form: 'b', value }, null, 0);
    cache.set('over', { form: 'b', value }, 10, 0);
    const seen = new Set<string>();
    let parts = 0;
    let next = 0;
    do {
      const part = cache.keys('', next, 20);
      expect(part.keys.join('').length).toBeLessThan(MIB + 10_000);
      for (const key of part.keys) seen.add(key);
      if ((parts += 1) === 1) cache.resize(64 * MIB);
      next = part.next;
    } while (next !== 0);
    expect(parts).toBeGreaterThan(2);
    expect(seen).toEqual(new Set(names));
    expect(cache.keys('\u04341', 0, 20).keys.every((key) => key.startsWith('\u04341'))).toBe(true);
  });

  it('is swept a part at a time, also when the entry is gone where the last sweep ended', () => {
    const cache = new LruCache(4 * MIB);
    for (let n = 0; n < 2_500; n += 1) {
      cache.set(`${n}`, { form: 'b', value: BYTES.subarray(0, 10) }, n < 2_000 ? 10 : null, 0);
    }
    cache.sweep(20);
    expect(cache.size).toBe(1_500);
    cache.delete('1000', 20);
    cache.sweep(20);
    expect(cache.size).toBe(500);
    cache.sweep(20);
    cache.sweep(20);
    expect([cache.size, cache.has('2499', 20)]).toEqual([500, true]);
  });

  it('gives back values of all sizes, also where their room lies in pieces', () => {
    const cache = new LruCache(4 * MIB);
    const known = new Map<string, Buffer>();
    let found = 0;
    for (let n = 0; n < 5_000; n += 1) {
      const key = `key ${Math.floor(Math.random() * 300)}`;
      const at = Math.floor(Math.random() * 190_000);
      const bytes = Math.floor(Math.random() * (n % 10 === 0 ? 190_000 : 2_000));
      const value = BYTES.subarray(at, at + bytes);
      cache.set(key, { form: 'form', value }, null, 0);
      known.set(key, value);
      const other = `key ${Math.floor(Math.random() * 300)}`;
      const entry = cache.get(other, 0);
      if (entry === undefined) continue;
      found += 1;
      expect(entry.form).toBe('form');
      expect(entry.value.equals(known.get(other)!)).toBe(true);
    }
    expect(found).toBeGreaterThan(1_000);
    cache.clear();
    expect([cache.bytes, cache.size, cache.get('key 1', 0)]).toEqual([0, 0, undefined]);
  });

  /** Bytes outside of V8's heap, measured without collecting garbage first. */
  const outside = () => process.memoryUsage().arrayBuffers;
  const value = BYTES.subarray(0, 1_000);
  const fill = (cache: LruCache, count: number, ttlMs: number | null = null) => {
    for (let n = 0; n < count; n += 1)
      cache.set(`some:prefix:${n}`, { form: 'b', value }, ttlMs, 0);
  };
  const sweep = (cache: LruCache, times: number, now = 0) => {
    for (let n = 0; n < times; n += 1) cache.sweep(now);
  };

  it('gives its memory back some seconds after it was cleared, and takes it again', async () => {
    await settledUse(() => true); // waits until the memory of other tests is free
    const before = outside();
    const cache = new LruCache(64 * MIB);
    for (let round = 0; round < 2; round += 1) {
      fill(cache, 50_000);
      const full = outside() - before;
      expect(full).toBeGreaterThan(50 * MIB);
      cache.clear();
      sweep(cache, 4);
      expect(outside() - before).toBeGreaterThan(0.98 * full); // it may be filled again at once
      sweep(cache, 6);
      expect(outside() - before).toBeLessThan(4 * MIB); // its table of keys, and of its blocks
    }
    fill(cache, 1_000);
    expect(cache.get('some:prefix:999', 0)?.value.equals(value)).toBe(true);
  });

  it('gives memory back that it has not needed for a while, though values come and go', async () => {
    await settledUse(() => true); // waits until the memory of other tests is free
    const before = outside();
    const cache = new LruCache(64 * MIB);
    fill(cache, 45_000, 10);
    const full = outside() - before;
    for (let n = 0; n < 500; n += 1) cache.set(`new ${n}`, { form: 'b', value }, null, 0);
    // A tenth of the values are set anew, again and again.
    for (let now = 1; now < 60; now += 1) {
      for (let n = 0; n < 100; n += 1) {
        cache.set(`new ${(now * 37 + n) % 500}`, { form: 'b', value }, null, now);
      }
      sweep(cache, 1, now);
    }
    expect(cache.size).toBe(500);
    expect(outside() - before).toBeLessThan(full / 10);
    for (let n = 0; n < 500; n += 1)
      expect(cache.get(`new ${n}`, 60)?.value.equals(value)).toBe(true);
  });

  it('has room for what it gave back where that was', () => {
    const blocks = new Blocks();
    for (let round = 0; round < 20; round += 1) {
      const chains = Array.from({ length: 4 }, () => blocks.take(4_000));
      expect(Math.max(...chains)).toBeLessThan(5 * 4_096);
      for (const each of chains) blocks.free(each);
      for (let n = 0; n < 6; n += 1) blocks.trim();
    }
  });

  it('gives back values of all sizes while it grows and shrinks', () => {
    const cache = new LruCache(12 * MIB);
    const known = new Map<string, Buffer>();
    let found = 0;
    for (let n = 0; n < 20_000; n += 1) {
      const key = `key ${Math.floor(Math.random() * 2_000)}`;
      const grows = n % 4_000 < 2_000;
      if (Math.random() < (grows ? 0.9 : 0.1)) {
        const at = Math.floor(Math.random() * 100_000);
        const set = BYTES.subarray(
          at,
          at + Math.floor(Math.random() * (n % 20 === 0 ? 90_000 : 3_000)),
        );
        cache.set(key, { form: 'form', value: set }, null, 0);
        known.set(key, set);
      } else cache.delete(key, 0);
      if (n % 50 === 0) cache.sweep(0);
      if (n % 4_000 === 3_999) for (const each of known.keys()) cache.delete(each, 0);
      const other = `key ${Math.floor(Math.random() * 2_000)}`;
      const entry = cache.get(other, 0);
      if (entry === undefined) continue;
      found += 1;
      expect(entry.value.equals(known.get(other)!)).toBe(true);
    }
    expect(found).toBeGreaterThan(1_000);
    for (const each of known.keys()) cache.delete(each, 0);
    expect([cache.bytes, cache.size]).toEqual([0, 0]);
  });

  it.each([8 * 1_024, 64 * 1_024])(
    'leaves nothing for V8 to collect, with values of %i bytes',
    async (bytes) => {
      const maxBytes = 64 * MIB;
      const value = Buffer.alloc(bytes);
      const cache = new LruCache(maxBytes);
      const before = await settledUse(() => true);
      let most = 0;
      for (let n = 0; n * bytes < 4 * maxBytes; n += 1) {
        cache.set(`some:prefix:${n}`, { form: 's', value }, null, 0);
        if (n % 100 === 0) most = Math.max(most, used() - before);
      }
      expect(most).toBeGreaterThan(0.9 * maxBytes);
      // Half of it for the young objects of some Nodes.
      expect(most).toBeLessThan(1.5 * maxBytes);
    },
  );
});
