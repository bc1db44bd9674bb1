import type { Command } from 'commander';
import { interruptible } from '../app/interruption.js';
import { MAIN_ARGUMENT, mainFile } from '../app/main-file.js';
import { wholeNumber } from '../cli/arguments.js';
import { printJson } from '../control/view/output.js';
import { measureBoot } from './measure-boot.js';
import { pageOf } from './report.js';

interface BootArguments {
  readonly limit: number;
  readonly json: boolean;
}

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 10_000;

export function addBootCommand(program: Command): void {
  const boot = program
    .command('boot')
    .summary('Says where the time goes when an app starts')
    .description(
      'Starts the app three times, as one worker on a free port, and ends it. Says which packages, ' +
        'files and hooks take the time until it is ready. The app starts as usual: it connects to ' +
        'its database, and its hooks run. If Node has a compile cache, the app starts seven times, ' +
        'with the cache and without it.',
    )
    .argument(...MAIN_ARGUMENT)
    .option(
      '--limit <n>',
      'number of packages and files to show',
      wholeNumber(MAX_LIMIT, 'a whole number'),
      DEFAULT_LIMIT,
    )
    .option('--json', 'print JSON', false);
  boot.action(async (main: string, { limit, json }: BootArguments) => {
    const script = mainFile(boot, main);
    await interruptible(async (interruption) => {
      const whole = await measureBoot(script, interruption);
      const report = { ...whole, modules: whole.modules.slice(0, limit) };
      if (json) printJson(report);
      else process.stdout.write(pageOf(report));
    });
  });
}
