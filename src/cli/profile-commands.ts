import type { Command } from 'commander';
import { oneLine } from '../contract/errors/index.js';
import { MAX_PROFILE_SECONDS } from '../contract/snapshot/inspection.js';
import type { ProfileAnswer } from '../control/control-api.js';
import type { WorkerStack } from '../contract/snapshot/inspection.js';
import { SLOT_ARGUMENT, wholeNumber } from './arguments.js';
import { clientFor, clientToAct, controlCommand, type ControlOptions } from './control-command.js';
import { printJson, printLine, printLines } from './view/output.js';
import { watched } from './view/watched.js';

interface RecordOptions extends ControlOptions {
  readonly seconds: number;
}

/** How long to wait for a stack. The primary itself waits nearly a second for the worker. */
const STACK_MS = 1_400;

const KINDS = [
  {
    name: 'cpu-profile',
    summary: 'Records what a worker spends its time with, also while it is blocked',
    defaultSeconds: 10,
  },
  {
    name: 'heap-profile',
    summary: 'Finds leaks: records which functions allocate the memory that a worker keeps',
    defaultSeconds: 30, // in a shorter profile, a cache that is being filled looks like a leak
  },
] as const;

type Kind = (typeof KINDS)[number];

/** Adds the commands that record a stack or a profile of a worker. */
export function addProfileCommands(program: Command): void {
  controlCommand(program, {
    name: 'stack',
    summary: 'Shows what a worker is doing, blocked or not',
    description:
      'Shows what a worker is doing, blocked or not. If it is slow only now and then, cpu-profile sees more',
    example: 'stack 1',
  })
    .argument(...SLOT_ARGUMENT)
    .action(async (slot: number, options: ControlOptions) => {
      const client = await clientFor(options);
      const stack = await client.get<WorkerStack>(`/v1/workers/${slot}/stack`, STACK_MS);
      if (options.json) printJson(stack);
      else printLines(inWords(stack));
      if (stack.problem !== null) process.exitCode = 1;
    });
  for (const kind of KINDS) addRecordCommand(program, kind);
}

function addRecordCommand(program: Command, { name, summary, defaultSeconds }: Kind): void {
  controlCommand(program, {
    name,
    summary,
    description: `${summary}. The worker writes the profile to a file`,
    example: `${name} 1 --seconds 5`,
  })
    .argument(...SLOT_ARGUMENT)
    .option(
      '-s, --seconds <n>',
      `length of the profile, 1 to ${MAX_PROFILE_SECONDS}`,
      wholeNumber(MAX_PROFILE_SECONDS, 'a whole number'),
      defaultSeconds,
    )
    .action(async (slot: number, options: RecordOptions) => {
      const client = await clientToAct(options);
      const path = `/v1/workers/${slot}/${name}?seconds=${options.seconds}`;
      const { file } = await watched(client, false, () => client.post<ProfileAnswer>(path));
      if (options.json) return printJson({ slot, kind: name, file });
      printLine(`worker=${slot}: ${file}; open it in Chrome's developer tools or in VS Code`);
    });
}

function inWords({ slot, pid, blockedForMs, requests, frames, problem }: WorkerStack): string[] {
  const worker = `worker=${slot} pid=${pid}`;
  const state =
    problem !== null
      ? `shows no stack: ${oneLine(problem)}`
      : blockedForMs !== null
        ? `has been blocked for ${seconds(blockedForMs)}, in`
        : frames.length > 0
          ? 'is not blocked; at this moment it ran'
          : 'is not blocked, and waits for something to do';
  const flight = requests.map(
    ({ method, path, forMs }) => `    ${oneLine(method)} ${oneLine(path)} for ${seconds(forMs)}`,
  );
  return [
    `${worker} ${state}`,
    ...frames.map((frame) => `    at ${oneLine(frame)}`),
    // If there is a problem, the requests are not known.
    ...(flight.length > 0
      ? ['in flight:', ...flight]
      : problem === null
        ? ['no request in flight']
        : []),
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
