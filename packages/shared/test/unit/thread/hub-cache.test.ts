import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { CacheEntries } from '../../../src/thread/cache-entries.js';

/** The bytes for which an entry counts whose key has one character, and whose value has 100 bytes. */
const ENTRY = 502;

const held = (cache: CacheEntries) => cache.keys('').toSorted().join('');

it('a cache removes what was used longest ago, and counts that', () => {
  const cache = new CacheEntries(3 * ENTRY);
  for (const key of 'abc') cache.set(key, Buffer.alloc(100, key), null);
  expect(cache.get('a')).toEqual(Buffer.alloc(100, 'a'));
  cache.set('d', Buffer.alloc(100), null);
  expect([held(cache), cache.get('b')]).toEqual(['acd', undefined]);
  expect(cache.stats).toEqual({ bytes: 3 * ENTRY, entries: 3, hits: 1, misses: 1, evictions: 1 });
});

it('a cache keeps no value that is larger than itself, and forgets the older one', () => {
  const cache = new CacheEntries(ENTRY);
  cache.set('a', Buffer.alloc(100), null);
  cache.set('a', Buffer.alloc(101), null);
  expect(cache.get('a')).toBeUndefined();
});

it('a cache copies a value, and forgets it after its time', async () => {
  const cache = new CacheEntries(10 * ENTRY);
  const value = Buffer.from('value');
  cache.set('a', value, 20);
  cache.set('b', value, 0);
  cache.set('c', value, Infinity);
  value.fill('x');
  expect([String(cache.get('a')), cache.get('b')]).toEqual(['value', undefined]);
  await delay(25);
  expect([cache.get('a'), String(cache.get('c'))]).toEqual([undefined, 'value']);
  cache.sweep();
  expect(cache.stats.entries).toBe(1);
});

it('a cache deletes a key, a prefix, and all', () => {
  const cache = new CacheEntries(10 * ENTRY);
  for (const key of ['a', 'ab', 'b', 'c']) cache.set(key, Buffer.alloc(1), null);
  expect([cache.delete('c'), cache.delete('c')]).toEqual([true, false]);
  cache.clear('a');
  expect(held(cache)).toBe('b');
  cache.clear();
  expect(held(cache)).toBe('');
});
