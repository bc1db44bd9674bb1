import type { Command } from 'commander';
import { oneLine } from '../../contract/errors/index.js';
import { MAX_PROFILE_SECONDS } from '../../contract/options/index.js';
import type { WorkerStack } from '../../contract/snapshot/index.js';
import { SLOT_ARGUMENT, wholeNumber } from '../cli/arguments.js';
import { summarizeProfile } from '../profiles/summarize-profile.js';
import { clientFor, controlCommand, type ControlOptions } from './control-command.js';
import { printJson, printLine, printLines } from './view/output.js';
import { ProfileFile } from './profile-file.js';
import { watched } from './view/watched.js';

interface RecordOptions extends ControlOptions {
  readonly seconds?: number;
  readonly output?: string;
}

/** How long to wait for a stack. The primary itself waits nearly a second for the worker. */
const STACK_MS = 1_400;

const KINDS = [
  {
    name: 'cpu-profile',
    summary: 'Records what a worker spends its time with, also while it is blocked',
    prints: 'Prints the functions that took most of it, and who called them',
    extension: 'cpuprofile',
    defaultSeconds: 10,
  },
  {
    name: 'heap-profile',
    summary: 'Finds leaks: records which functions allocate the memory that a worker keeps',
    prints:
      'Prints the functions of which most is held, and who called them. A leak shows only while there is traffic',
    extension: 'heapprofile',
    defaultSeconds: 30, // in a shorter profile, a cache that is being filled looks like a leak
  },
  {
    name: 'heap-snapshot',
    summary: 'Replaces a worker, and takes a snapshot of the heap of the old one before it ends',
    prints: 'Try heap-profile first: it says which function fills the memory',
    extension: 'heapsnapshot',
    defaultSeconds: undefined,
  },
] as const;

type Kind = (typeof KINDS)[number];

/** Adds the commands that record a stack, a profile or a heap snapshot of a worker. */
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

function addRecordCommand(program: Command, kind: Kind): void {
  const { name, summary, prints, extension, defaultSeconds } = kind;
  const isTimed = defaultSeconds !== undefined;
  const command = controlCommand(program, {
    name,
    summary,
    description: `${summary}. ${prints}`,
    example: isTimed ? `${name} 1 --seconds 5 -o slow.${extension}` : `${name} 1`,
  })
    .argument(...SLOT_ARGUMENT)
    .option('-o, --output <file>', `file to write (default: worker-<slot>-<time>.${extension})`)
    .action((slot: number, options: RecordOptions) => record(kind, slot, options));
  if (!isTimed) return;
  command.option(
    '-s, --seconds <n>',
    `length of the profile, 1 to ${MAX_PROFILE_SECONDS}`,
    wholeNumber(MAX_PROFILE_SECONDS, 'a whole number'),
    defaultSeconds,
  );
}

async function record(
  { name, extension, defaultSeconds }: Kind,
  slot: number,
  options: RecordOptions,
): Promise<void> {
  const client = await clientFor(options);
  const { seconds, output = `worker-${slot}-${timestamp()}.${extension}` } = options;
  const path = `/v1/workers/${slot}/${name}${seconds === undefined ? '' : `?seconds=${seconds}`}`;
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => interrupted.abort(signal));
  }
  const { signal } = interrupted;
  const open = () => client.open('POST', path, { signal });
  let bytes: number;
  try {
    bytes = await watched(client, undefined, () => write(output, open));
  } catch (error) {
    // The incomplete file has been removed, so the process can now end by the signal that it got.
    if (signal.aborted) process.kill(process.pid, signal.reason as NodeJS.Signals);
    throw error;
  }
  const { summary, lines = [] } =
    (defaultSeconds !== undefined && (await summarizeProfile(name, { file: output, bytes }))) || {};
  if (options.json) return printJson({ slot, kind: name, file: output, bytes, summary });
  const size = bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${Math.round(bytes / 1e6)} MB`;
  printLine(
    `worker=${slot}: ${output} (${size}); open it in Chrome's developer tools or in VS Code`,
  );
  if (lines.length > 0) printLines(lines);
}

async function write(output: string, open: () => Promise<AsyncIterable<Buffer>>): Promise<number> {
  const file = await ProfileFile.create(output);
  try {
    return await file.take(await open());
  } finally {
    await file[Symbol.asyncDispose]();
  }
}

/** The time in UTC, without characters that a file name may not have. */
function timestamp(): string {
  return new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
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
