import type { Command } from 'commander';
import { temporaryCacheDirectory } from '../../contract/process/compile-cache.js';
import { interruptible } from '../app/interruption.js';
import { MAIN_ARGUMENT, mainFile } from '../app/main-file.js';
import { wholeNumber } from '../cli/arguments.js';
import { type WarmCache, warmApp } from './warm-app.js';

interface WarmArguments {
  readonly timeout: number;
  readonly json: boolean;
}

const MAX_SECONDS = 3_600;

export function addWarmCommand(program: Command): void {
  const warm = program
    .command('warm')
    .summary("Fills Node's compile cache, so that the first start is fast")
    .description(
      'Starts the app once, as one worker on a free port, writes the code that Node has compiled ' +
        'into node_modules/.cache/nestjs-cluster of the app, and ends the app. ' +
        'Run it while an image is built, as the user of the app, with the same Node and at the same path. ' +
        'Writes the cache also if the app does not become ready, for example without its database.',
    )
    .argument(...MAIN_ARGUMENT)
    .option(
      '--timeout <seconds>',
      'how long to wait for the app to become ready',
      wholeNumber(MAX_SECONDS, 'a whole number'),
      30,
    )
    .option('--json', 'print JSON', false);
  warm.action(async (main: string, { timeout, json }: WarmArguments) => {
    const script = mainFile(warm, main);
    await interruptible(async (interruption) => {
      const cache = await warmApp(script, timeout * 1_000, interruption);
      if (cache.directory === temporaryCacheDirectory()) process.stderr.write(TEMPORARY);
      process.stdout.write(`${json ? JSON.stringify(cache) : lineOf(cache)}\n`);
    });
  });
}

const TEMPORARY =
  'warning: the cache is in the directory for temporary files, which a container may replace; let this user write to node_modules/.cache/nestjs-cluster of the app\n';

function lineOf({ directory, files, bytes, why }: WarmCache): string {
  const size = (bytes / 1_000_000).toFixed(1);
  return `${files} files, ${size} MB in ${directory}; the app ${why ?? 'became ready'}`;
}
