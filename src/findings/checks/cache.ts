import { at, classOf } from '../app-view.js';
import type { Check } from '../check.js';

/** The token of @nestjs/cache-manager. */
const CACHE_MANAGER = 'CACHE_MANAGER';

/** Classes of stores that live in the process: of JavaScript, cacheable, keyv, lru-cache and quick-lru. */
const IN_MEMORY: ReadonlySet<string> = new Set([
  'Map',
  'CacheableMemory',
  'KeyvCacheableMemory',
  'LRUCache',
  'QuickLRU',
]);

export const cache: Check = {
  name: 'cache',
  level: 'problem',
  remedy:
    'give CacheModule the store of nestjs-cluster/cache, { stores: [clusterCache()] }; or, beyond one machine, one in Redis',
  docs: 'docs/shared-state.md#every-worker-is-a-process',
  look: (app) =>
    app.providers
      .filter(({ token, instance }) => token === CACHE_MANAGER && isInMemory(instance))
      .map(({ module }) => ({
        where: app.describeModule(module),
        problem: 'every worker has a cache of its own, so what one deletes lives on in the others',
      })),
};

function isInMemory(manager: unknown): boolean {
  const stores = at(manager, 'stores');
  // A second level that all share makes the first one faster; that it may be stale is its choice.
  return Array.isArray(stores) && stores.length > 0 && stores.every(livesInProcess);
}

/** A Keyv has its store in its options, a Cacheable its levels in properties. */
function livesInProcess(keyv: unknown): boolean {
  if (at(keyv, 'secondary') !== undefined) return false;
  const store = at(keyv, 'opts', 'store') ?? at(keyv, 'primary', 'store') ?? keyv;
  return IN_MEMORY.has(classOf(store));
}
