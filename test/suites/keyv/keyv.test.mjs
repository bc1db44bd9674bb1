import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { clusterCache } from '@nestjs-cluster/shared/cache';
import * as vitest from 'vitest';
import { storeOfWorkers } from './store.mjs';

const load = (file) => import(pathToFileURL(join(process.env.SUITE, 'node_modules', file)).href);
const suite = await load('@keyv/test-suite/dist/index.js');

for (const version of ['keyv', 'keyv-6']) {
  const { Keyv } = await load(`${version}/dist/index.mjs`).catch(() =>
    load(`${version}/dist/index.js`),
  );
  for (const [where, store] of Object.entries({
    'without a cluster': () => clusterCache(),
    'in three workers': storeOfWorkers,
  })) {
    vitest.describe(`${version} ${where}:`, () => {
      suite.default(vitest, Keyv, store);
      suite.keyvIteratorTests(vitest, Keyv, store);
    });
  }
}
