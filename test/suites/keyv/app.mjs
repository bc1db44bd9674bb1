// Makes the calls of store.mjs on the shared cache.
import { deserialize, serialize } from 'node:v8';
import { clusterCache } from '@nestjs-cluster/shared/cache';
import { controller } from '../../fixtures/declare.mjs';

const stores = new Map();

function storeOf(namespace) {
  if (!stores.has(namespace)) stores.set(namespace, Object.assign(clusterCache(), { namespace }));
  return stores.get(namespace);
}

async function make(namespace, method, args) {
  if (method !== 'iterator') return storeOf(namespace)[method](...args);
  const entries = [];
  for await (const entry of storeOf(namespace).iterator()) entries.push(entry);
  return entries;
}

export function setup() {
  const Store = controller({
    'POST store': async (params, { call }) => {
      const answer = await make(...deserialize(Buffer.from(call, 'base64')));
      return serialize(answer).toString('base64');
    },
  });
  return { controllers: [Store] };
}
