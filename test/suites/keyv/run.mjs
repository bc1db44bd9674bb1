// Runs @keyv/test-suite on the shared cache, with Keyv 5 and 6: in one process, and so that each call
// is made by another worker than the call before.
import { join } from 'node:path';
import { Cluster } from '../cluster.mjs';
import { npmPackages, vitest } from '../install.mjs';
import { Verdict } from '../verdict.mjs';

const here = import.meta.dirname;
const suite = npmPackages('keyv', [
  '@keyv/test-suite@2.1.2',
  'keyv@5.6.0',
  'keyv-6@npm:keyv@6.1.0',
]);
const cluster = await Cluster.start({
  app: join(here, 'app.mjs'),
  options: { workers: 3, balancing: 'round-robin' },
});
const report = vitest(here, { SUITE: suite, SUITE_URL: cluster.url });
await cluster.stop();

const ARRAY =
  'Keyv 6 answers `delete([…])` with an array, with any store; the suite is made for Keyv 5';
const verdict = new Verdict({
  'keyv-6 without a cluster: .deleteMany([keys]) with nonexistent keys resolves to false': ARRAY,
  'keyv-6 in three workers: .deleteMany([keys]) with nonexistent keys resolves to false': ARRAY,
});
verdict.addVitest(report);
verdict.end();
