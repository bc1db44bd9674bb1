// Writes durations.json, by which the longest files begin first, from JSON reports of vitest:
//   TEST_REPORT=rest.json npm run test:rest; node test/support/note-durations.mjs rest.json
// What the reports do not have keeps its figure. Unit tests are too short to matter.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = join(import.meta.dirname, 'durations.json');
const PART = /\/test\/((?!unit\/)[^/]+\/[^/]+)\.test\.ts$/;

const measured = {};
for (const report of process.argv.slice(2)) {
  for (const { name, startTime, endTime } of JSON.parse(readFileSync(report, 'utf8')).testResults) {
    const file = PART.exec(name)?.[1];
    if (file === undefined) continue;
    // A file may have run on several Nodes.
    measured[file] = Math.max(measured[file] ?? 0, Math.round((endTime - startTime) / 1_000));
  }
}

const before = JSON.parse(readFileSync(FILE, 'utf8'));
const all = Object.entries({ ...before, ...measured })
  .filter(([file]) => existsSync(join(import.meta.dirname, '..', `${file}.test.ts`)))
  .sort(([a], [b]) => a.localeCompare(b));
writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
