import type { Command } from 'commander';
import { setTimeout as delay } from 'node:timers/promises';
import { interruptible } from '../app/interruption.js';
import { wholeNumber } from '../cli/arguments.js';
import { clientFor, controlCommand, type ControlOptions } from '../control/control-command.js';
import type { ControlClient } from '../control/control-client.js';
import { printJson, printLines } from '../control/view/output.js';
import { type Logged, watched } from '../control/view/watched.js';
import { collect } from './collect.js';
import { adviceOf, linesOf } from './report.js';
import { tryInThread } from './trial.js';
import { trialLines } from './trial-report.js';

interface AdviseOptions extends ControlOptions {
  readonly seconds: number;
  readonly limit: number;
  readonly try?: string;
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
      'what else helps, and what the other requests would gain. Changes nothing, unless --try names a ' +
      'method: then one worker runs it in a thread for the time, next to the others, and is replaced',
    example: 'advise --seconds 300\n  nestjs-cluster advise --try OrdersController.report',
  })
    .option(
      '-s, --seconds <n>',
      `length of the profile or the trial, 1 to ${MAX_SECONDS}`,
      wholeNumber(MAX_SECONDS, 'a whole number'),
      DEFAULT_SECONDS,
    )
    .option(
      '--limit <n>',
      'number of methods to show',
      wholeNumber(MAX_LIMIT, 'a whole number'),
      DEFAULT_LIMIT,
    )
    .option('--try <method>', 'method to try in a thread of one worker, as Class.method')
    .action(async ({ seconds, limit, try: method, ...options }: AdviseOptions) => {
      const client = await clientFor(options);
      if (method !== undefined) return tryMethod(client, method, seconds, options);
      const whole = adviceOf(await collect(client, seconds));
      const advice = { ...whole, methods: whole.methods.slice(0, limit) };
      if (options.json) printJson(advice);
      else printLines(linesOf(advice));
    });
}

async function tryMethod(
  client: ControlClient,
  method: string,
  seconds: number,
  { json }: ControlOptions,
): Promise<void> {
  const progress = ({ data }: Logged): string => `  ${data.text}`;
  await interruptible(async ({ signal }) => {
    const run = () =>
      tryInThread(client, method, seconds, (ms) => delay(ms, undefined, { signal }));
    const trial = await watched(client, json ? undefined : progress, run);
    if (json) printJson(trial);
    else printLines(trialLines(trial));
  }, 'the trial');
}
