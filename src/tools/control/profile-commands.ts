import { type Command, Option } from 'commander';
import { oneLine } from '../../contract/errors/index.js';
import { MAX_PROFILE_SECONDS } from '../../contract/options/index.js';
import type { WorkerStack } from '../../contract/snapshot/index.js';
import { slotNumber, wholeNumber } from '../cli/arguments.js';
import { summarizeProfile } from '../profiles/summarize-profile.js';
import { clientFor, controlCommand, type ControlOptions } from './control-command.js';
import { printJson, printLine, printLines } from './view/output.js';
import { ProfileFile } from './profile-file.js';
import { watched } from './view/watched.js';

interface RecordOptions extends ControlOptions {
  readonly seconds?: number;
  readonly output?: string;
}

/** A primary gives a worker nearly a second to say where it is. */
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
    defaultSeconds: 30, // in less, a cache that is being filled looks like a leak
  },
  {
    name: 'heap-snapshot',
    summary: 'Replaces a worker, and takes a snapshot of the heap of the old one before it ends',
    prints: 'Try heap-profile first: it says which function fills the memory',
    extension: 'heapsnapshot',
    defaultSeconds: undefined,
  },
] as const;

/** Commands that look into a worker. */
export function addProfileCommands(program: Command): void {
  addStackCommand(program);
  for (const kind of KINDS) addRecordCommand(program, kind);
}

function addStackCommand(program: Command): void {
  const command = controlCommand(program, {
    usage: 'stack',
    summary: 'Shows what a worker is doing, blocked or not',
    description:
      'Shows what a worker is doing, blocked or not. If it is slow only now and then, cpu-profile sees more',
    example: 'stack 1',
  })
    .argument('<slot>', 'number of the slot, from 0; status shows them', slotNumber)
    .action(async (slot: number, options: ControlOptions) => {
      const client = await clientFor(command, options);
      const stack = await client.get<WorkerStack>(`/v1/workers/${slot}/stack`, STACK_MS);
      process.stdout.write(options.json ? `${JSON.stringify(stack)}\n` : inWords(stack));
      if (stack.problem !== null) process.exitCode = 1;
    });
}

function addRecordCommand(
  program: Command,
  { name, summary, prints, extension, defaultSeconds }: (typeof KINDS)[number],
): void {
  const isTimed = defaultSeconds !== undefined;
  const command = controlCommand(program, {
    usage: name,
    summary,
    description: `${summary}. ${prints}`,
    example: isTimed ? `${name} 1 --seconds 5 -o slow.${extension}` : `${name} 1`,
  })
    .argument('<slot>', 'number of the slot, from 0; status shows them', slotNumber)
    .option('-o, --output <file>', `file to write (default: worker-<slot>-<time>.${extension})`)
    .action(async (slot: number, options: RecordOptions) => {
      const client = await clientFor(command, options);
      const { seconds, output = `worker-${slot}-${timestamp()}.${extension}` } = options;
      const query = seconds === undefined ? '' : `?seconds=${seconds}`;
      const interruption = new Interruption();
      const open = () =>
        client.open('POST', `/v1/workers/${slot}/${name}${query}`, {
          body: {},
          signal: interruption.signal,
        });
      const written = await watched(client, undefined, () => record(output, open)).catch(
        (error: unknown) => {
          interruption.endProcess();
          throw error;
        },
      );
      const summarized = isTimed
        ? await summarizeProfile(name, { file: output, bytes: written })
        : undefined;
      const { summary, lines = [] } = summarized ?? {};
      const result = { slot, kind: name, file: output, bytes: written, summary };
      const size =
        written < 1e6 ? `${Math.ceil(written / 1e3)} kB` : `${Math.round(written / 1e6)} MB`;
      if (options.json) return printJson(result);
      printLine(
        `worker=${slot}: ${output} (${size}); open it in Chrome's developer tools or in VS Code`,
      );
      if (lines.length > 0) printLines(lines);
    });
  if (!isTimed) return;
  command.addOption(
    new Option('-s, --seconds <n>', `length of the profile, 1 to ${MAX_PROFILE_SECONDS}`)
      .argParser(wholeNumber(MAX_PROFILE_SECONDS, 'a whole number'))
      .default(defaultSeconds),
  );
}

async function record(
  output: string,
  open: () => ReturnType<Awaited<ReturnType<typeof clientFor>>['open']>,
): Promise<number> {
  const file = await ProfileFile.create(output);
  try {
    return await file.take(await open());
  } finally {
    await file[Symbol.asyncDispose]();
  }
}

/** Ctrl-C leaves no half file, and ends the command as it ends others. */
class Interruption {
  readonly #controller = new AbortController();
  #by: NodeJS.Signals | undefined;

  constructor() {
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(name, () => {
        this.#by = name;
        this.#controller.abort();
      });
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  endProcess(): void {
    if (this.#by !== undefined) process.kill(process.pid, this.#by);
  }
}

/** In UTC, as a file may be called. */
function timestamp(): string {
  return new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
}

function inWords({ slot, pid, blockedForMs, requests, frames, problem }: WorkerStack): string {
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
    // Without an answer of its main thread that is not known.
    ...(flight.length > 0
      ? ['in flight:', ...flight]
      : problem === null
        ? ['no request in flight']
        : []),
    '',
  ].join('\n');
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
