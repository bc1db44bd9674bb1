import KeyvRedis from '@keyv/redis';
import { createCache } from 'cache-manager';
import { Keyv } from 'keyv';
import { ClusterCache, clusterCache } from 'nestjs-cluster/cache';
import { setTimeout as delay } from 'node:timers/promises';
import { monotonicMs } from './monotonic.mjs';
import { REDIS_URL } from './redis.mjs';

const KEYS = 64;
const SIZES = { '1 KB': 1_024, '64 KB': 64 * 1_024 };
const COMPUTE_MS = 20;
const TTL_MS = 60_000;
/** Maximum size of each cache whose memory is measured. */
const FILLED_BYTES = 128 * 1_024 * 1_024;
/** All workers request a missing value at once: at each multiple of this on the machine's clock. */
const MISS_EVERY_MS = 50;

/** Both behind cache-manager and Keyv, as an app has them. */
export async function cacheOperations() {
  const caches = {
    hub: createCache({ stores: [new Keyv({ store: clusterCache() })], ttl: TTL_MS }),
    redis: createCache({ stores: [new Keyv({ store: new KeyvRedis(REDIS_URL) })], ttl: TTL_MS }),
  };
  const operations = {};
  let turn = 0;
  for (const [system, cache] of Object.entries(caches)) {
    for (const [size, bytes] of Object.entries(SIZES)) {
      const value = 'v'.repeat(bytes);
      const key = () => `${size} ${(turn += 1) % KEYS}`;
      await Promise.all(Array.from({ length: KEYS }, () => cache.set(key(), value)));
      operations[`get ${size} ${system}`] = async () => {
        if ((await cache.get(key())) === undefined) throw new Error('there is no such value');
      };
      operations[`set ${size} ${system}`] = () => cache.set(key(), value);
    }
  }
  return { ...operations, ...missed(caches), ...fills() };
}

/** All workers miss the same key at once. */
function missed(caches) {
  const values = new ClusterCache();
  let computed = 0;
  const compute = async () => {
    computed += 1;
    await delay(COMPUTE_MS);
    return { at: Date.now() };
  };
  const missing = (system, ask) => async () => {
    await delay(MISS_EVERY_MS - (Date.now() % MISS_EVERY_MS));
    const startedAt = monotonicMs();
    await ask(`missed ${system} ${Math.floor(Date.now() / MISS_EVERY_MS)}`);
    return { tookMs: monotonicMs() - startedAt };
  };
  return {
    'getOrSet hub': missing('hub', (key) => values.getOrSet(key, compute, { ttlMs: 1_000 })),
    'getOrSet redis': missing('redis', (key) => caches.redis.wrap(key, compute, 1_000)),
    computed: () => {
      const count = computed;
      computed = 0;
      return count;
    },
  };
}

/** Values of one size, always new ones, in a cache that is bounded. */
function fills() {
  const operations = {};
  for (const bytes of [100, 64 * 1_024]) {
    const cache = new ClusterCache({ name: `fill ${bytes}`, maxBytes: FILLED_BYTES });
    let count = 0;
    operations[`fill ${bytes}`] = async () => {
      count += 1;
      await cache.set(`some:key:${count}`, Buffer.alloc(bytes, count % 256));
    };
  }
  return operations;
}
