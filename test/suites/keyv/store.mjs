import { deserialize, serialize } from 'node:v8';
import { clusterCache } from '@nestjs-cluster/shared/cache';

const { opts } = clusterCache();

/** The app passes connections to its workers in turn, so the next worker makes the call. */
async function call(namespace, method, args) {
  const response = await fetch(`${process.env.SUITE_URL}/store`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ call: serialize([namespace, method, args]).toString('base64') }),
  });
  if (!response.ok) throw new Error(await response.text());
  return deserialize(Buffer.from(await response.text(), 'base64'));
}

/** A store for Keyv, each call of which is made by another worker of a cluster than the call before. */
export function storeOfWorkers() {
  const store = {
    opts,
    namespace: undefined,
    on: () => store,
    async *iterator() {
      yield* await call(store.namespace, 'iterator', []);
    },
  };
  const methods = ['get', 'set', 'setMany', 'has', 'hasMany', 'delete', 'deleteMany', 'clear'];
  for (const method of methods) store[method] = (...args) => call(store.namespace, method, args);
  return store;
}
