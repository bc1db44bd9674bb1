// One runner for every measurement: npm run bench -- --help
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { COMPARISONS } from './comparisons/index.mjs';
import { runComparison } from './comparisons/run-comparison.mjs';
import { BusyMachineError } from './machine-use.mjs';
import { describeMachine, readCommit, readVersions } from './machine.mjs';
import { stopAll } from './process-group.mjs';
import { writeReport } from './report.mjs';
import { tablesOf } from './report/tables.mjs';
import { readSettings } from './settings.mjs';
import { UsageError } from './command-line.mjs';

const RESULTS = fileURLToPath(new URL('results/', import.meta.url));
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

const interrupted = new AbortController();
for (const [signal, code] of Object.entries(SIGNALS)) {
  process.once(signal, () => {
    console.error(`${signal}: ending what was started`);
    interrupted.abort(new Error(signal));
    void stopAll().finally(() => process.exit(code));
  });
}

try {
  await main(readSettings(process.argv.slice(2)));
} catch (error) {
  // After a signal, work may fail with any error. Then the signal's handler ends the run.
  if (!interrupted.signal.aborted) {
    const known = error instanceof UsageError || error instanceof BusyMachineError;
    console.error(known ? `error: ${error.message}` : error);
    await stopAll();
    process.exit(error instanceof UsageError ? 2 : 1);
  }
}

async function main(settings) {
  if (settings.help) {
    console.log(settings.help);
    return;
  }
  const { node } = settings;
  const nodeVersion = versionOf(node);
  const results = [];
  for (const name of settings.scopes) {
    const result = await measure(name, { ...settings, node, nodeVersion });
    results.push(result);
    if (settings.json) writeJson(settings.json, results.length === 1 ? result : results);
  }
}

function versionOf(node) {
  try {
    return execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
  } catch ({ code }) {
    throw new UsageError(`--node ${node} cannot be run: ${code}`);
  }
}

async function measure(name, settings) {
  const about = {
    scope: name,
    command: `npm run bench -- --scope ${name}`,
    date: new Date().toISOString(),
    commit: readCommit(),
    machine: describeMachine(),
    versions: readVersions(settings.nodeVersion),
  };
  const comparison = COMPARISONS.find((one) => one.name === name);
  const progress = (line) => console.error(line);
  const { signal } = interrupted;
  const compared = await runComparison(comparison, { ...settings, progress, signal });
  const result = { ...about, ...compared };
  console.log(`\n${tablesOf(result, { wide: true }).join('\n\n')}\n`);
  if (result.rows.every(({ notRun }) => notRun !== undefined)) {
    console.error('error: no system was measured, so nothing is published');
    process.exitCode = 1;
  } else if (settings.isPublished) {
    mkdirSync(RESULTS, { recursive: true });
    writeJson(`${RESULTS}${name}.json`, result);
    writeReport();
  }
  return result;
}

function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
