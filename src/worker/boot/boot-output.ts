import { stripVTControlCharacters } from 'node:util';
import { reportError, type ErrorReport } from '../../contract/errors/error-report.js';

/** How much of the end of standard error is kept, in characters. */
const MAX_TAIL_LENGTH = 16_384;
const MAX_MESSAGE_LENGTH = 2_000;

/** The context in Nest's log lines for an error in its container. Nest exits after such a line. */
const NEST_CONTEXT = 'ExceptionHandler';
const NEST_ERROR = `[${NEST_CONTEXT}]`;

/**
 * Finds the error of a failed startup in the output on standard error. By default (`abortOnError`),
 * Nest logs an error in its container and exits, so the error cannot be caught.
 */
export class BootWatch {
  #tail = '';
  readonly #write = Reflect.get(process.stderr, 'write');
  #ended = false;
  /** Whether Nest has begun to log the error. */
  #logged = false;
  #logText: string | undefined;
  readonly #copying = ((chunk: string | Uint8Array, ...rest: []) => {
    if (!this.#ended) {
      this.#tail = (this.#tail + String(chunk)).slice(-MAX_TAIL_LENGTH);
      this.#logText ??= errorOfJsonLine(String(chunk));
      this.#logged ||=
        this.#logText !== undefined || stripVTControlCharacters(this.#tail).includes(NEST_ERROR);
      if (this.#logged && !this.printsError) return true;
    }
    return this.#write.call(process.stderr, chunk, ...rest);
  }) as typeof process.stderr.write;
  readonly #onExit = (): void => this.failed(this.#lastWords());
  readonly #onUncaught = (error: unknown): void => {
    // Without this, onExit() would report older output: Node does not print the error with `write`.
    process.off('exit', this.#onExit);
    this.failed(reportError(error));
    // An app's own handler takes precedence, and ours would keep Node from printing the error.
    if (process.listenerCount('uncaughtException') > 0 || this.prints) return;
    process.once('uncaughtException', () => {
      this.end();
      this.leave();
    });
  };

  /**
   * @param printsError whether to print the error; `false` if another worker has printed it.
   * @param failed is called with the error. It must be synchronous, because the process may be exiting.
   * @param leave ends the process after an uncaught error.
   */
  constructor(
    private readonly printsError: boolean,
    private readonly failed: (error: ErrorReport) => void,
    private readonly leave: () => void,
  ) {
    process.stderr.write = this.#copying;
    takeOverFromEarlyBoot();
    process.once('exit', this.#onExit);
    process.once('uncaughtExceptionMonitor', this.#onUncaught);
  }

  /** Whether the error must be printed. `false` if Nest or another worker has printed it. */
  get prints(): boolean {
    return !this.#logged && this.printsError;
  }

  /** Stops watching. Called when the app has started or its error is known. */
  end(): void {
    // If the app has wrapped our `write`, the function stays installed and only forwards.
    if (process.stderr.write === this.#copying) process.stderr.write = this.#write;
    this.#ended = true;
    process.off('exit', this.#onExit);
    process.off('uncaughtExceptionMonitor', this.#onUncaught);
  }

  #lastWords(): ErrorReport {
    const text = (this.#logText ?? this.#lastText()).trim().slice(0, MAX_MESSAGE_LENGTH);
    if (text === '') {
      return { name: 'Error', message: 'the process exited while the app was being created' };
    }
    const [, name = 'Error', message = text] =
      /^([\w$]+)(?: \[\w+\])?: (.*?)(?=\n\s+at |$)/s.exec(text) ?? [];
    return { name, message, stack: text };
  }

  #lastText(): string {
    const tail = stripVTControlCharacters(this.#tail);
    const start = tail.lastIndexOf(NEST_ERROR);
    return start < 0 ? tail.slice(-MAX_MESSAGE_LENGTH) : tail.slice(start + NEST_ERROR.length);
  }
}

/**
 * Reads the error from a line of `ConsoleLogger({ json: true })`. Nest 12 prints the error in the
 * field `error`. Nest 11 prints it as text in the field `message`.
 */
function errorOfJsonLine(line: string): string | undefined {
  if (!line.includes(`"context":"${NEST_CONTEXT}"`)) return undefined;
  try {
    const { context, message, error } = JSON.parse(line) as Record<string, unknown>;
    if (context !== NEST_CONTEXT) return undefined;
    const text = (error as { stack?: unknown } | undefined)?.stack ?? message;
    return stripVTControlCharacters(typeof text === 'string' ? text : JSON.stringify(text));
  } catch {
    return undefined;
  }
}

/** Removes the error listener of `early-boot.ts`, which is needed only until this file is loaded. */
function takeOverFromEarlyBoot(): void {
  const handOver: unknown = Reflect.get(globalThis, Symbol.for('nestjs-cluster.early-boot'));
  if (typeof handOver === 'function') handOver();
}

/** The part of Nest's `Logger` that is used here. `staticInstanceRef` is internal to Nest 11 and 12. */
interface NestLogger {
  staticInstanceRef: LoggerService | undefined;
  overrideLogger(logger: unknown): unknown;
}

type LoggerService = Partial<Record<string, (...args: unknown[]) => unknown>>;

const QUIET = ['log', 'debug', 'verbose'] as const;
const LOUD = ['warn', 'error', 'fatal'] as const;

/**
 * Limits Nest's log to warnings and errors while this worker starts, because another worker logs the
 * same lines. The limit also applies to a logger that the app passes to Nest.
 *
 * @returns a function that removes the limit.
 */
export function quietStart(nest: NestLogger): () => void {
  let wanted = nest.staticInstanceRef;
  const override = nest.overrideLogger.bind(nest);
  const forward =
    (name: string) =>
    (...args: unknown[]) =>
      wanted?.[name]?.(...args);
  const quiet: LoggerService = {
    ...Object.fromEntries(QUIET.map((name) => [name, () => {}])),
    ...Object.fromEntries([...LOUD, 'setLogLevels'].map((name) => [name, forward(name)])),
  };
  override(quiet);
  nest.overrideLogger = (logger) => {
    override(logger);
    if (nest.staticInstanceRef === quiet) return; // the app only set log levels
    wanted = nest.staticInstanceRef;
    override(quiet);
  };
  return () => {
    nest.overrideLogger = override;
    nest.staticInstanceRef = wanted;
  };
}
