import type { Command } from 'commander';
import { wholeNumber } from '../cli/arguments.js';
import { clientFor, controlCommand, type ControlOptions } from '../control/control-command.js';
import { printJson, printLines } from '../control/view/output.js';
import { collect } from './collect.js';
import { adviceOf, linesOf } from './report.js';

interface AdviseOptions extends ControlOptions {
  readonly seconds: number;
  readonly limit: number;
}

const DEFAULT_SECONDS = 60;
const MAX_SECONDS = 3_600;
const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 10_000;

export function addAdviseCommand(program: Command): void {
  controlCommand(program, {
    name: 'advise',
    summary: 'Names the methods that block the event loop, and says what to do about each',
    description:
      'Profiles all workers at the same time, which costs up to a fifth of their CPU. Names the ' +
      'methods that block the event loop, and says for each whether @CpuBound() can work there or ' +
      'what else helps, and what the other requests would gain. Changes nothing',
    example: 'advise --seconds 300',
  })
    .option(
      '-s, --seconds <n>',
      `length of the profile, 1 to ${MAX_SECONDS}`,
      wholeNumber(MAX_SECONDS, 'a whole number'),
      DEFAULT_SECONDS,
    )
    .option(
      '--limit <n>',
      'number of methods to show',
      wholeNumber(MAX_LIMIT, 'a whole number'),
      DEFAULT_LIMIT,
    )
    .action(async ({ seconds, limit, ...options }: AdviseOptions) => {
      const client = await clientFor(options);
      const whole = adviceOf(await collect(client, seconds));
      const advice = { ...whole, methods: whole.methods.slice(0, limit) };
      if (options.json) printJson(advice);
      else printLines(linesOf(advice));
    });
}
