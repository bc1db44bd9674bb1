import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LruCache } from '../../src/hub/services/lru-cache.js';

const keys = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const step = fc.oneof(
  fc.record({ do: fc.constant('get' as const), key: keys }),
  fc.record({
    do: fc.constant('set' as const),
    key: keys,
    bytes: fc.nat(400),
    ttlMs: fc.option(fc.nat(30)),
  }),
  fc.record({ do: fc.constant('delete' as const), key: keys }),
  fc.record({ do: fc.constant('clear' as const) }),
  fc.record({ do: fc.constant('sweep' as const) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.nat(20) }),
);

const ROOM = 1_500;
/** Of an entry beside its value: what the cache itself reckons with. */
const OVERHEAD = 257;

describe('a cache of the hub', () => {
  it('gives what was set last, for as long as it was to live, and removes what was used longest ago', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const cache = new LruCache(ROOM);
        // Who was used last is last.
        let model: { key: string; value: Buffer; until: number }[] = [];
        let now = 0;
        let lastByte = 0;
        const size = () => model.reduce((sum, { value }) => sum + value.length + OVERHEAD, 0);
        const without = (key: string) => model.filter((each) => each.key !== key);
        for (const each of steps) {
          switch (each.do) {
            case 'get': {
              const known = model.find(({ key }) => key === each.key);
              const alive = known !== undefined && known.until > now;
              expect(cache.has(each.key, now)).toBe(alive);
              expect(cache.get(each.key, now)?.value).toEqual(alive ? known.value : undefined);
              model = alive ? [...without(each.key), known] : without(each.key);
              break;
            }
            case 'set': {
              const value = Buffer.alloc(each.bytes, (lastByte = (lastByte + 37) % 256));
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

  it.each([20, 300, 64 * 1_024])(
    'takes as much memory as it says, with values of %i bytes',
    async (bytes) => {
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc') as () => void;
      /** V8 takes what is collected off its figure in threads of its own, when these come to it. */
      const used = async (isEnough: (bytes: number) => boolean): Promise<number> => {
        let least = Infinity;
        for (let looks = 0; looks < 3 || (looks < 100 && !isEnough(least)); looks += 1) {
          collect();
          await delay(20);
          const { heapUsed, external } = process.memoryUsage();
          least = Math.min(least, heapUsed + external);
        }
        return least;
      };
      const maxBytes = 16 * 1_024 * 1_024;
      const before = await used(() => true);
      const cache = new LruCache(maxBytes);
      const count = (1.2 * maxBytes) / (bytes + 256);
      // Keys and forms as they come out of JSON: each is a string of its own.
      for (let n = 0; n < count; n += 1) {
        const { key, form } = JSON.parse(`{"key":"some:prefix:${n}","form":"s"}`);
        cache.set(key, { form, value: Buffer.alloc(bytes, n) }, null, 0);
      }
      expect(cache.bytes).toBeGreaterThan(0.98 * maxBytes);
      const most = before + 1.05 * maxBytes;
      expect(await used((bytes) => bytes < most)).toBeLessThan(most);
      expect(cache.size).toBeGreaterThan(0);
    },
  );

  it('does not keep a value that is larger than itself, nor the one that it was to replace', () => {
    const cache = new LruCache(ROOM);
    cache.set('a', { form: 'b', value: Buffer.alloc(10) }, null, 0);
    expect(cache.set('a', { form: 'b', value: Buffer.alloc(ROOM) }, null, 0)).toBe(0);
    expect(cache.get('a', 0)).toBeUndefined();
  });

  it('makes room when it is bounded anew', () => {
    const cache = new LruCache(ROOM);
    for (const key of ['a', 'b', 'c'])
      cache.set(key, { form: 'b', value: Buffer.alloc(100) }, null, 0);
    expect(cache.resize(400)).toBe(2);
    expect(cache.get('c', 0)).toBeDefined();
  });
});
