import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CacheEntries } from '../../../../src/thread/cache/cache-entries.js';

const keys = fc.constantFrom('a', 'b', '\u043d', '\ud800', '\ud801');
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

const ROOM = 3_000;
/** The bytes for which an entry counts whose key has one character, and whose value has 100 bytes. */
const ENTRY = 502;
const MIB = 1_024 * 1_024;
const BYTES = randomBytes(200_000);

/** The bytes for which an entry counts. */
function roomOf(key: string, value: Buffer): number {
  return 400 + 2 * key.length + value.length;
}

describe('a cache of the hub', () => {
  it('gives what was set last, for as long as it was to live, and removes what was used longest ago', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const cache = new CacheEntries(ROOM);
        // The entry that was used most recently is the last.
        let model: { key: string; value: Buffer; until: number }[] = [];
        let now = 1;
        let lastByte = 0;
        const size = () => model.reduce((sum, { key, value }) => sum + roomOf(key, value), 0);
        const without = (key: string) => model.filter((each) => each.key !== key);
        for (const each of steps) {
          switch (each.do) {
            case 'get': {
              const known = model.find(({ key }) => key === each.key);
              const alive = known !== undefined && known.until >= now;
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
              expect(cache.delete(each.key, now)).toBe(known !== undefined && known.until >= now);
              model = without(each.key);
              break;
            }
            case 'clear':
              cache.clear();
              model = [];
              break;
            case 'sweep':
              cache.sweep(now);
              model = model.filter(({ until }) => until >= now);
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
      const cache = new CacheEntries(maxBytes);
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
    const cache = new CacheEntries(ROOM);
    cache.set('a', { form: 'b', value: Buffer.alloc(10) }, null, 0);
    expect(cache.set('a', { form: 'b', value: Buffer.alloc(ROOM) }, null, 0)).toBe(0);
    expect(cache.get('a', 0)).toBeUndefined();
  });

  it('makes room when it is bounded anew, and finds what it holds', () => {
    const cache = new CacheEntries(2 * ENTRY);
    const set = (key: string) =>
      cache.set(key, { form: 'b', value: Buffer.alloc(100, key) }, null, 0);
    const held = () =>
      ['a', 'b', 'c', 'd', 'e', 'f', 'g'].filter((key) => cache.has(key, 0)).join('');
    const evicted = ['a', 'b', 'c'].map(set);
    expect(evicted).toEqual([0, 0, 1]);
    expect(cache.resize(64 * ENTRY)).toBe(0);
    for (const key of 'defg') expect(set(key)).toBe(0);
    expect(held()).toBe('bcdefg');
    expect(cache.resize(3 * ENTRY)).toBe(3);
    expect(held()).toBe('efg');
    expect(cache.get('e', 0)?.value).toEqual(Buffer.alloc(100, 'e'));
  });

  it('lists the living keys that begin with a prefix', () => {
    const cache = new CacheEntries(MIB);
    const set = (key: string, ttlMs: number | null) =>
      cache.set(key, { form: 'b', value: BYTES.subarray(0, 10) }, ttlMs, 5);
    for (const key of ['aa', 'a\u0461', 'b', '']) set(key, null);
    set('a over', 10);
    expect(cache.keys('a', 10).toSorted()).toEqual(['a over', 'aa', 'a\u0461']);
    expect(cache.keys('a', 20).toSorted()).toEqual(['aa', 'a\u0461']);
    expect(cache.keys('', 20)).toHaveLength(4);
  });
});
