// A cluster under clients, to which something happens every few seconds: npm run chaos -- --help
import { writeFileSync } from 'node:fs';
import { UsageError } from '../bench/command-line.mjs';
import { makeChaos } from './chaos.mjs';
import { judge } from './judge.mjs';
import { describe } from './report.mjs';
import { readSettings } from './settings.mjs';

const interrupted = new Promise((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      console.error(`${signal}: ending what was started`);
      resolve(signal);
    });
  }
});

try {
  await main(readSettings(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof UsageError ? `error: ${error.message}` : error);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
// Handlers of signals are all that is left.
process.exit();

async function main(settings) {
  if (settings.help) return console.log(settings.help);
  const { seed, seconds, workers, adapter } = settings;
  console.error(`chaos, seed ${seed}: ${seconds} s, ${workers} workers, ${adapter}`);
  const verdict = judge(settings, await makeChaos(settings, interrupted, tell));
  console.log(describe(verdict));
  if (settings.json) writeFileSync(settings.json, `${JSON.stringify(verdict, null, 2)}\n`);
  process.exitCode = verdict.ok ? 0 : 1;
}

function tell({ name, parameters, at, injectMs, recoveryMs, lost, left }) {
  const time = new Date(at).toISOString().slice(11, 19);
  const seconds = Math.max(0, Math.round(left / 1_000));
  console.error(
    `${time} ${name} ${JSON.stringify(parameters)}: ${injectMs ?? '-'} ms, ` +
      `recovered in ${recoveryMs ?? '-'} ms; lost so far ${lost}; ${seconds} s left`,
  );
}
