// A cluster under clients, to which something happens every few seconds: npm run chaos -- --help
import { writeFileSync } from 'node:fs';
import { UsageError } from '../bench/command-line.mjs';
import { makeChaos } from './chaos.mjs';
import { judge } from './judge.mjs';
import { print } from './report.mjs';
import { readSettings } from './settings.mjs';

/**
 * Runs a cluster under faults, prints the verdict, and ends the process.
 *
 * @param more `schedule(settings)` and `finish(verdict, settings)` of a soak.
 */
export async function main(args, help, { schedule, finish } = {}) {
  const interrupted = new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
      process.on(signal, () => {
        console.error(`${signal}: ending what was started`);
        resolve(signal);
      });
    }
  });
  try {
    const settings = readSettings(args, help);
    if (settings.help) console.log(settings.help);
    else await run({ ...settings, ...(schedule && { schedule: schedule(settings) }) });
  } catch (error) {
    console.error(error instanceof UsageError ? `error: ${error.message}` : error);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
  // Handlers of signals are all that is left.
  process.exit();

  async function run(settings) {
    const { seed, seconds, workers, adapter } = settings;
    console.error(`chaos, seed ${seed}: ${seconds} s, ${workers} workers, ${adapter}`);
    const verdict = judge(settings, await makeChaos(settings, interrupted, tell));
    print(verdict);
    if (settings.json) writeFileSync(settings.json, `${JSON.stringify(verdict, null, 2)}\n`);
    finish?.(verdict, settings);
    process.exitCode = verdict.ok ? 0 : 1;
  }
}

function tell({ name, parameters, at, recoveryMs, lost, left }) {
  const time = new Date(at).toISOString().slice(11, 19);
  const seconds = Math.max(0, Math.round(left / 1_000));
  console.error(
    `${time} ${name} ${JSON.stringify(parameters)}: recovered in ${recoveryMs ?? '-'} ms; lost so far ${lost}; ${seconds} s left`,
  );
}

if (process.argv[1] === import.meta.filename) await main(process.argv.slice(2));
