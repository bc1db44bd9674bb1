import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { ToolError } from '../output.js';

/** Maximum number of lines of a failed app's output that are shown: its last lines. */
const LAST_LINES = 60;
const LINE_LENGTH = 400;

/** After a signal, how long to wait for the processes to end before the next signal is sent. */
const PATIENCE_MS = 5_000;
const POLL_MS = 20;

/** After the process has exited, how long to read on for the last of its output. */
const LAST_WORDS_MS = 200;

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such command',
  EACCES: 'it may not be run (EACCES)',
};

/** The user's app: the given command and all processes that it starts. */
export class AppProcess {
  readonly #child: ChildProcess;
  #said = '';
  #failure: Error | undefined;
  readonly #ended = new AbortController();

  constructor(
    readonly command: readonly string[],
    environment: Readonly<Record<string, string>>,
    /** Is called for each IPC message of the command, which then has to be a Node process. */
    onMessage?: (message: unknown) => void,
  ) {
    const [program, ...args] = command;
    this.#child = spawn(program!, args, {
      // Makes a process group, so that a signal also reaches the processes that a shell or npm has
      // started. Ctrl-C in the terminal does not reach the group: only `end()` sends it a signal.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', ...(onMessage ? (['ipc'] as const) : [])],
      env: { ...process.env, ...environment },
    });
    if (onMessage !== undefined) this.#child.on('message', onMessage);
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#said = (this.#said + text).slice(-LAST_LINES * LINE_LENGTH);
      });
    }
    this.#child.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      this.#end(
        new ToolError(
          `cannot run ${JSON.stringify(program)}: ${REASONS[code ?? ''] ?? message}. Give the command that starts the app behind "--"`,
        ),
      );
    });
    // 'close' comes when all output has been read. It never comes if a child keeps the output open.
    this.#child.once('close', () => this.#end(undefined));
    this.#child.once('exit', () => setTimeout(() => this.#end(undefined), LAST_WORDS_MS));
  }

  /** A signal that aborts when the app has ended. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Why the app has ended, with its last lines. */
  get failure(): Error {
    const { exitCode, signalCode } = this.#child;
    const how = signalCode === null ? `ended with code ${exitCode}` : `was killed by ${signalCode}`;
    return this.#failure ?? new ToolError(`the app ${how}${this.lastLines}`, 70);
  }

  /** The last lines of the app's output, to be put at the end of an error message. */
  get lastLines(): string {
    const lines = stripVTControlCharacters(this.#said)
      .split('\n')
      .filter((line) => line.trim() !== '')
      .slice(-LAST_LINES)
      .map((line) => `\n  | ${line.slice(0, LINE_LENGTH)}`);
    return lines.length === 0 ? ' and wrote nothing' : `; the last it wrote:${lines.join('')}`;
  }

  /** Sends SIGTERM twice, with a wait after each, then kills all processes with SIGKILL. */
  async end(): Promise<void> {
    for (const signal of ['SIGTERM', 'SIGTERM', 'SIGKILL'] as const) {
      // While the command runs, only the command gets the signal. A worker that got the signal too
      // would end and be replaced.
      if (signal === 'SIGKILL' || this.ended.aborted) this.#signalGroup(signal);
      else this.#child.kill(signal);
      if (await this.#goneWithin(PATIENCE_MS)) return;
    }
  }

  /** Kills all processes at once, e.g. as this process exits. */
  kill(): void {
    this.#signalGroup('SIGKILL');
  }

  async #goneWithin(ms: number): Promise<boolean> {
    const deadline = performance.now() + ms;
    let asked = this.ended.aborted;
    while (this.#signalGroup(0)) {
      // The command, such as a shell, has ended before the processes that it started. Ends these processes too.
      if (this.ended.aborted && !asked) {
        asked = true;
        this.#signalGroup('SIGTERM');
      }
      if (performance.now() > deadline) return false;
      await delay(POLL_MS);
    }
    return true;
  }

  /** @returns whether the group still has a process. */
  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    const { pid } = this.#child;
    if (pid === undefined) return false;
    try {
      return process.kill(-pid, signal);
    } catch (error) {
      // macOS also fails with EPERM if the group has only zombies left.
      return (error as NodeJS.ErrnoException).code === 'EPERM' && !this.ended.aborted;
    }
  }

  #end(failure: Error | undefined): void {
    if (this.ended.aborted) return;
    this.#failure = failure;
    this.#ended.abort();
  }
}
