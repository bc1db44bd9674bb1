import type { Command } from 'commander';
import { wholeNumber } from '../arguments.js';
import { findCluster, withCluster } from '../cluster.js';
import { printJson, printLines } from '../output.js';
import { collect } from './collect.js';
import { adviceOf, linesOf } from './report.js';

interface AdviseOptions {
  readonly cluster?: string;
  readonly json: boolean;
  readonly seconds: number;
}

/** The control socket's maximum. */
const MAX_SECONDS = 60;

export function addAdviseCommand(program: Command): void {
  withCluster(program.command('advise'))
    .summary('Lists the functions that block the event loop, with a remedy for each')
    .description(
      'Profiles all workers of a running cluster at once, using up to a fifth of their ' +
        'CPU. Lists the functions of the app that block the event loop, a remedy for each, and how much ' +
        'faster other requests would be. Changes nothing.',
    )
    .option(
      '-s, --seconds <n>',
      `length of the profile, 1 to ${MAX_SECONDS}`,
      wholeNumber(MAX_SECONDS, 'a whole number'),
      30,
    )
    .option('--json', 'print JSON', false)
    .action(async ({ cluster, json, seconds }: AdviseOptions) => {
      const advice = adviceOf(await collect(await findCluster(cluster), seconds));
      if (json) printJson(advice);
      else printLines(linesOf(advice));
    });
}
