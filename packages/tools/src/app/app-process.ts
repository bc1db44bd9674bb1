import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { ToolError } from '../output.js';

/** Maximum number of characters shown from the end of a failed app's output. */
const LAST_CHARACTERS = 8_000;

/** How long to wait after a signal before the next signal is sent. */
const PATIENCE_MS = 5_000;
const POLL_MS = 20;

/** How long to keep reading output after the process has exited. */
const LAST_WORDS_MS = 200;

/** The user's app: the command and all processes started by it. */
export class AppProcess {
  readonly #child: ChildProcess;
  #output = '';
  #failure: Error | undefined;
  readonly #ended = new AbortController();
  readonly #kill = (): void => void this.#signalGroup('SIGKILL');

  constructor(
    command: readonly string[],
    environment: Readonly<Record<string, string>>,
    /** Called for each IPC message. The command must be a Node process. */
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
    // If this process fails, the app must not outlive it.
    process.on('exit', this.#kill);
    if (onMessage !== undefined) this.#child.on('message', onMessage);
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-LAST_CHARACTERS);
      });
    }
    this.#child.once('error', ({ message }) =>
      this.#end(new ToolError(`cannot start the app: ${message}`)),
    );
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
    const how = signalCode ? `was killed by ${signalCode}` : `exited with code ${exitCode}`;
    return this.#failure ?? new ToolError(`the app ${how}${this.lastLines}`, 70);
  }

  /** The last lines of the app's output, for the end of an error message. */
  get lastLines(): string {
    const lines = stripVTControlCharacters(this.#output)
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => `\n  | ${line}`);
    return lines.length === 0 ? ' without output' : `; its last output:${lines.join('')}`;
  }

  /** Ends all processes with SIGINT, then SIGTERM, then SIGKILL, and waits after each signal. */
  async end(): Promise<void> {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
      this.#signalGroup(signal);
      const until = performance.now() + PATIENCE_MS;
      while (this.#signalGroup(0) && performance.now() < until) await delay(POLL_MS);
    }
    process.off('exit', this.#kill);
  }

  /** @returns whether the group still has a process. */
  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    const { pid } = this.#child;
    try {
      return pid !== undefined && process.kill(-pid, signal);
    } catch {
      return false;
    }
  }

  #end(failure: Error | undefined): void {
    if (this.ended.aborted) return;
    this.#failure = failure;
    this.#ended.abort();
  }
}
