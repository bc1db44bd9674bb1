import { type Command, InvalidArgumentError, Option } from 'commander';
import { oneLine } from '../../errors/index.js';
import { MAX_PROFILE_SECONDS, MAX_WORKERS } from '../../options/index.js';
import type { WorkerStack } from '../../snapshot/index.js';
import { wholeNumber } from '../arguments.js';
import { clientFor, controlCommand, type ControlOptions } from './control-command.js';
import { ProfileFile } from './profile-file.js';

interface RecordOptions extends ControlOptions {
  readonly seconds?: number;
  readonly output?: string;
}

const DEFAULT_SECONDS = 10;

const KINDS = [
  {
    name: 'cpu-profile',
    summary: 'record what a worker spends its time with, also while it is blocked',
    extension: 'cpuprofile',
    isTimed: true,
  },
  {
    name: 'heap-profile',
    summary: 'record which functions allocate what a worker keeps, also while it is blocked',
    extension: 'heapprofile',
    isTimed: true,
  },
  {
    name: 'heap-snapshot',
    summary: 'replace a worker, and take a snapshot of the heap of the old one before it ends',
    extension: 'heapsnapshot',
    isTimed: false,
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
    summary: 'show what a worker is doing, blocked or not',
    example: 'stack 1',
  })
    .argument('<slot>', 'slot of the worker', slotNumber)
    .action(async (slot: number, options: ControlOptions) => {
      const client = await clientFor(command, options);
      const stack = await client.get<WorkerStack>(`/v1/workers/${slot}/stack`);
      process.stdout.write(options.json ? `${JSON.stringify(stack)}\n` : inWords(stack));
      if (stack.problem !== null) process.exitCode = 1;
    });
}

function addRecordCommand(
  program: Command,
  { name, summary, extension, isTimed }: (typeof KINDS)[number],
): void {
  const command = controlCommand(program, {
    usage: name,
    summary,
    example: isTimed ? `${name} 1 --seconds 5 -o slow.${extension}` : `${name} 1`,
  })
    .argument('<slot>', 'slot of the worker', slotNumber)
    .option('-o, --output <file>', `file to write (default: worker-<slot>-<time>.${extension})`)
    .action(async (slot: number, options: RecordOptions) => {
      const client = await clientFor(command, options);
      const { seconds, output = `worker-${slot}-${timestamp()}.${extension}` } = options;
      const query = seconds === undefined ? '' : `?seconds=${seconds}`;
      const interruption = new Interruption();
      const written = await record(output, () =>
        client.open('POST', `/v1/workers/${slot}/${name}${query}`, {
          body: {},
          signal: interruption.signal,
        }),
      ).catch((error: unknown) => {
        interruption.endProcess();
        throw error;
      });
      const result = { slot, kind: name, file: output, bytes: written };
      const size =
        written < 1e6 ? `${Math.ceil(written / 1e3)} kB` : `${Math.round(written / 1e6)} MB`;
      process.stdout.write(
        options.json
          ? `${JSON.stringify(result)}\n`
          : `worker=${slot}: ${output} (${size}); open it in Chrome's developer tools or in VS Code\n`,
      );
    });
  if (!isTimed) return;
  command.addOption(
    new Option('-s, --seconds <n>', `length of the profile, 1 to ${MAX_PROFILE_SECONDS}`)
      .argParser(wholeNumber(MAX_PROFILE_SECONDS, 'a whole number'))
      .default(DEFAULT_SECONDS),
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

function slotNumber(text: string): number {
  if (/^\d{1,3}$/.test(text) && Number(text) < MAX_WORKERS) return Number(text);
  throw new InvalidArgumentError(`expected a slot, a whole number from 0 to ${MAX_WORKERS - 1}.`);
}

/** In UTC, as a file may be called. */
function timestamp(): string {
  return new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
}

function inWords({ slot, pid, blockedForMs, requests, frames, problem }: WorkerStack): string {
  const worker = `worker=${slot} pid=${pid}`;
  if (problem !== null) return `${worker} shows no stack: ${oneLine(problem)}\n`;
  const state =
    blockedForMs !== null
      ? `has been blocked for ${seconds(blockedForMs)}, in`
      : frames.length > 0
        ? 'is not blocked; it was in'
        : 'is not blocked, and waits for something to do';
  return [
    `${worker} ${state}`,
    ...frames.map((frame) => `    at ${oneLine(frame)}`),
    requests.length === 0 ? 'no request in flight' : 'in flight:',
    ...requests.map(
      ({ method, path, forMs }) => `    ${oneLine(method)} ${oneLine(path)} for ${seconds(forMs)}`,
    ),
    '',
  ].join('\n');
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
