// Suites of others, run against this package. `npm run suites -- --only porcupine` runs one of them;
// what follows `--` again is for that suite.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { prepareFixtures } from '../support/quick-packages.mjs';

const { values, positionals } = parseArgs({
  options: { only: { type: 'string', multiple: true } },
  allowPositionals: true,
});
const suites = readdirSync(import.meta.dirname).filter((name) =>
  existsSync(join(import.meta.dirname, name, 'run.mjs')),
);
const unknown = (values.only ?? []).filter((name) => !suites.includes(name));
if (unknown.length > 0) {
  console.error(`there is no suite ${unknown.join(', ')}; there is ${suites.join(', ')}`);
  process.exit(64);
}
await prepareFixtures();
for (const name of values.only ?? suites) {
  const { status } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, name, 'run.mjs'), ...positionals],
    { stdio: 'inherit' },
  );
  console.log(`${name}: ${status === 0 ? 'passed' : 'failed'}`);
  if (status !== 0) process.exitCode = 1;
}
