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

// The suite of Keyv itself tests the rest, with Keyv 5 and 6: test/suites/keyv.
describe('the store of Keyv', () => {
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
});
