import { at, classOf } from '../app-view.js';
import type { Check, Observation } from '../finding.js';

/** The injection token of @nestjs/cache-manager. */
const CACHE_MANAGER = 'CACHE_MANAGER';

/** Classes of stores that live in the process: of JavaScript, cacheable, keyv, lru-cache and quick-lru. */
const IN_MEMORY: ReadonlySet<string> = new Set([
  'Map',
  'CacheableMemory',
  'KeyvCacheableMemory',
  'KeyvMemoryAdapter',
  'LRUCache',
  'QuickLRU',
]);

export const cache: Check = {
  name: 'cache',
  remedy:
    'give CacheModule the store of @nestjs-cluster/shared/cache, { stores: [clusterCache()] }; or, beyond one machine, one in Redis',
  look: (app) =>
    app.providers
      .filter(({ token }) => token === CACHE_MANAGER)
      .flatMap(({ module, instance }) => {
        const stores = at(instance, 'stores');
        const seen = Array.isArray(stores) && stores.length > 0 ? problemOf(stores) : undefined;
        return seen === undefined ? [] : [{ where: app.describeModule(module), ...seen }];
      }),
};

function problemOf(stores: readonly unknown[]): Omit<Observation, 'where'> | undefined {
  // A store in the process is fine in front of a shared store: the app accepts that it may be
  // stale.
  if (stores.every(livesInProcess)) {
    return {
      problem: 'every worker has a cache of its own, so what one deletes lives on in the others',
    };
  }
  if (!stores.some(isKeyv6)) return undefined;
  return {
    problem: 'wrap() of cache-manager computes each time, since it cannot read values of Keyv 6',
    remedy: 'npm install keyv@5',
  };
}

/** Keyv 6 has another name for the property that cache-manager 6 and 7 read. It also has no options. */
function isKeyv6(store: unknown): boolean {
  return classOf(store) === 'Keyv' && at(store, 'opts') === undefined;
}

/** Keyv 5 has its store in its options, Keyv 6 in a property. Cacheable has its levels in properties. */
function livesInProcess(keyv: unknown): boolean {
  if (at(keyv, 'secondary') !== undefined) return false;
  const store =
    (at(keyv, 'opts', 'store') ??
      at(keyv, 'primary', 'store') ??
      (isKeyv6(keyv) && at(keyv, 'store'))) ||
    keyv;
  return IN_MEMORY.has(classOf(store));
}
