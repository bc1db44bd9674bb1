// Runs @keyv/test-suite on the shared cache, with Keyv 5 and 6: in one process, and so that each call
// is made by another worker than the call before.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Cluster } from '../cluster.mjs';
import { npmPackages } from '../install.mjs';
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
const report = join(suite, 'report.json');
rmSync(report, { force: true });
const { stdout, stderr } = spawnSync(
  'npx',
  [
    'vitest',
    'run',
    '--root',
    here,
    '--config',
    'vitest.config.mjs',
    '--reporter',
    'json',
    '--outputFile',
    report,
  ],
  { encoding: 'utf8', env: { ...process.env, SUITE: suite, SUITE_URL: cluster.url } },
);
await cluster.stop();

const verdict = new Verdict();
try {
  verdict.addVitest(JSON.parse(readFileSync(report, 'utf8')));
} catch {
  verdict.add('the run', stdout + stderr);
}
verdict.end();
