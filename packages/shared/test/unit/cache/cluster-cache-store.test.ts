import { CACHE_MANAGER, CacheModule } from '@nestjs/cache-manager';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Cache } from 'cache-manager';
import { Keyv } from 'keyv';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../../../../test/support/eventually.js';
import { clusterCache } from '../../../src/cache/index.js';

let caches = 0;
/** A new cache for each test: caches with the same name share their entries. */
const store = () => clusterCache({ name: `store-${(caches += 1)}` });

async function create(): Promise<Cache> {
  @Module({ imports: [CacheModule.register({ stores: [store()] })] })
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  onTestFinished(() => app.close());
  return app.get<Cache>(CACHE_MANAGER, { strict: false });
}

describe('the store of CacheModule', () => {
  it('keeps what is set, and forgets what is deleted', async () => {
    const cache = await create();
    const values = { object: { list: [1, 'x'] }, null: null, false: false, zero: 0, text: '' };
    for (const [key, value] of Object.entries(values)) await cache.set(key, value);
    for (const [key, value] of Object.entries(values)) expect(await cache.get(key)).toEqual(value);
    expect(await cache.get('none')).toBeUndefined();

    await cache.del('object');
    expect(await cache.get('object')).toBeUndefined();
    await cache.mset([
      { key: 'a', value: 1 },
      { key: 'b', value: 2 },
    ]);
    expect((await cache.mget(['a', 'none', 'b'])).map((value) => value ?? null)).toEqual([
      1,
      null,
      2,
    ]);
    await cache.mdel(['a', 'b']);
    expect(await cache.get('a')).toBeUndefined();
    await cache.clear();
    expect(await cache.get('zero')).toBeUndefined();
  });

  it('forgets what is over, and knows when that will be', async () => {
    const cache = await create();
    await cache.set('short', 1, 500);
    expect(await cache.get('short')).toBe(1);
    await eventually('its end', async () => (await cache.get('short')) === undefined);
    const before = Date.now();
    await cache.set('long', 1, 60_000);
    expect(await cache.ttl('long')).toBeGreaterThanOrEqual(before + 60_000);
  });

  it('keeps what wrap() computes', async () => {
    const cache = await create();
    let computed = 0;
    const ask = () => cache.wrap('wrapped', () => (computed += 1), 60_000);
    expect([await ask(), await ask(), computed]).toEqual([1, 1, 1]);
  });
});

describe('the store of Keyv', () => {
  it('has what another Keyv of the same name has set', async () => {
    const [one, other] = [store(), clusterCache({ name: `store-${caches}` })].map(
      (each) => new Keyv({ store: each }),
    );
    await one!.set('key', { of: 'one' });
    expect(await other!.get('key')).toEqual({ of: 'one' });
    expect([await other!.has('key'), await other!.has('none')]).toEqual([true, false]);
    expect(await other!.delete('key')).toBe(true);
    expect(await one!.get('key')).toBeUndefined();
  });

  it.each([
    // Keyv 5 names a namespace in its keys as well, unless it is told not to.
    { useKeyPrefix: true },
    { useKeyPrefix: false },
  ])('keeps namespaces apart, and clears each alone: %o', async (options) => {
    const shared = store();
    const [one, other] = ['one', 'one:more'].map(
      (namespace) => new Keyv({ store: clusterCache(shared.opts), namespace, ...options }),
    );
    await one!.set('key', 1);
    await other!.set('key', 2);
    await shared.set('one:key', 3);
    expect([await one!.get('key'), await other!.get('key')]).toEqual([1, 2]);
    await one!.clear();
    expect([await one!.get('key'), await other!.get('key')]).toEqual([undefined, 2]);
    expect(await shared.get('one:key')).toBe(3);
    await shared.clear();
    expect([await other!.get('key'), await shared.get('one:key')]).toEqual([undefined, undefined]);
  });

  it.each(['keyv', 'one'])(
    'tells Keyv 5 all keys and values of its namespace %s',
    async (namespace) => {
      const shared = store();
      const [own, other] = [namespace, 'two'].map(
        (each) => new Keyv({ store: clusterCache(shared.opts), namespace: each }),
      );
      for (let n = 0; n < 100; n += 1) await own!.set(`key${n}`, { n });
      await other!.set('key', 'of the other');
      const seen = new Map<string, unknown>();
      for await (const [key, value] of own!.iterator!(namespace)) seen.set(key, value);
      const all = Array.from({ length: 100 }, (_, n) => [`key${n}`, { n }]);
      expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(all));
    },
  );

  it('has the methods by which Keyv 6 leaves namespaces to a store', async () => {
    const [own, other] = [store(), clusterCache({ name: `store-${caches}` })];
    expect('namespace' in own).toBe(true);
    own.namespace = 'one';
    other.namespace = 'two';
    const entries = [
      { key: 'a:b', value: 1 },
      { key: '\u0434', value: 2, ttl: 60_000 },
      { key: 'over', value: 3, ttl: 0 },
    ];
    expect(await own.setMany(entries)).toEqual([true, true, true]);
    await other.set('other', 4);
    const seen = [];
    for await (const entry of own.iterator()) seen.push(entry);
    expect(Object.fromEntries(seen)).toEqual({ 'a:b': 1, '\u0434': 2 });
    expect(await own.hasMany(['a:b', 'over'])).toEqual([true, false]);
    expect(await own.deleteMany(['a:b', '\u0434'])).toBe(true);
    expect([await own.has('\u0434'), await own.deleteMany(['a:b'])]).toEqual([false, false]);
  });
});
