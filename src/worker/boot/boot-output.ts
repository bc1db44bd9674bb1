import { stripVTControlCharacters } from 'node:util';
import { reportError, type ErrorReport } from '../../contract/errors/error-report.js';

/** Maximum length of the kept output on standard error, in characters. Older output is dropped. */
const MAX_TAIL_LENGTH = 16_384;
const MAX_MESSAGE_LENGTH = 2_000;

/** The log context of an error of Nest's container. Nest logs such an error and then ends the process. */
const NEST_CONTEXT = 'ExceptionHandler';
const NEST_ERROR = `[${NEST_CONTEXT}]`;

/**
 * Finds out why an app did not start if no error reaches us. By default (`abortOnError`) Nest logs
 * an error of its container and exits, so the error is the last output on standard error.
 */
export class BootWatch {
  #tail = '';
  readonly #write = Reflect.get(process.stderr, 'write');
  #ended = false;
  /** Set when Nest has begun to log the error. Nest ends the process right after that. */
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
    process.off('exit', this.#onExit); // it knows less: Node prints the error past our `write`
    this.failed(reportError(error));
    // Adds no handler if the app has its own, or if Node is to print the error.
    if (process.listenerCount('uncaughtException') > 0 || this.prints) return;
    process.once('uncaughtException', () => {
      this.end();
      this.leave();
    });
  };

  /**
   * @param printsError whether to print the error; `false` if another worker has printed it.
   * @param failed is called with the error. The process may be exiting, so it must be synchronous.
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

  /** Whether the error must still be printed: neither Nest nor another worker has printed it. */
  get prints(): boolean {
    return !this.#logged && this.printsError;
  }

  /** Stops watching. Called when the app has started, or when its error is known. */
  end(): void {
    // If the app has wrapped our `write`, ours stays installed and only forwards.
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
 * Reads the error from a line that `ConsoleLogger({ json: true })` printed. Nest 12 prints the
 * error in the field `error`, Nest 11 as text in `message`.
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

/** Ends the watch of `early-boot.ts`, which reports errors until this file has been loaded. */
function takeOverFromEarlyBoot(): void {
  const handOver: unknown = Reflect.get(globalThis, Symbol.for('nestjs-cluster.early-boot'));
  if (typeof handOver === 'function') handOver();
}

/** The used part of Nest's `Logger`. `staticInstanceRef` is an internal of Nest 11 and 12. */
interface NestLogger {
  staticInstanceRef: LoggerService | undefined;
  overrideLogger(logger: unknown): unknown;
}

type LoggerService = Partial<Record<string, (...args: unknown[]) => unknown>>;

const QUIET = ['log', 'debug', 'verbose'] as const;
const LOUD = ['warn', 'error', 'fatal'] as const;

/**
 * Makes Nest log only warnings and errors while this worker starts, because another worker logs the
 * same lines. A logger that the app gives to Nest is also limited to them.
 *
 * @returns a function that makes Nest log again as the app wants.
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
    if (nest.staticInstanceRef === quiet) return; // the call has only set log levels
    wanted = nest.staticInstanceRef;
    override(quiet);
  };
  return () => {
    nest.overrideLogger = override;
    nest.staticInstanceRef = wanted;
  };
}
