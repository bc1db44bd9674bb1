import { stripVTControlCharacters } from 'node:util';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import { reportError, type ErrorReport } from '../../contract/ipc/index.js';
import { explainDoubleClass } from '../../contract/process/two-copies.js';

const MAX_TAIL_LENGTH = 16_384;
const MAX_MESSAGE_LENGTH = 2_000;

/** The context under which Nest logs an error of its container, just before it ends the process. */
const NEST_CONTEXT = 'ExceptionHandler';
const NEST_ERROR = `[${NEST_CONTEXT}]`;

/**
 * Finds out why an app did not come up when nothing of it reaches us: by
 * default Nest logs an error of its container and calls `process.exit(1)`
 * itself (`abortOnError`). Its last output on standard error is the error.
 */
export class BootWatch {
  #tail = '';
  readonly #write = Reflect.get(process.stderr, 'write');
  #ended = false;
  /** Nest has begun to log the error, which is the last thing that it does. */
  #logged = false;
  /** The error, where Nest logged it as JSON. */
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
    this.failed(reportError(error));
    // Node would print it. A handler of the app's decides itself.
    if (process.listenerCount('uncaughtException') > 0 || this.prints) return;
    process.once('uncaughtException', () => {
      this.end();
      this.leave();
    });
  };

  /**
   * @param printsError whether the error is to be printed; otherwise another worker has printed it.
   * @param failed is called while the process exits: it can only send.
   * @param leave ends the process after an error that nobody caught.
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

  /** Whether an error that is known is still to be printed: neither Nest nor another worker has done it. */
  get prints(): boolean {
    return !this.#logged && this.printsError;
  }

  /** The app is up, or its error is known. */
  end(): void {
    // The app may have put its own around ours: then ours stays in, and passes on.
    if (process.stderr.write === this.#copying) process.stderr.write = this.#write;
    this.#ended = true;
    process.off('exit', this.#onExit);
    process.off('uncaughtExceptionMonitor', this.#onUncaught);
  }

  #lastWords(): ErrorReport {
    const text = (this.#logText ?? this.#lastText()).trim().slice(0, MAX_MESSAGE_LENGTH);
    if (text === '') {
      return { name: 'Error', message: 'the app ended the process while it was created' };
    }
    const [, name = 'Error', message = text] =
      /^([\w$]+)(?: \[\w+\])?: (.*?)(?=\n\s+at |$)/s.exec(text) ?? [];
    const explained = explainDoubleClass(message);
    if (explained === undefined) return { name, message, stack: text };
    // No restart helps.
    return { name, message: explained, stack: text, code: ClusterConfigurationError.code };
  }

  #lastText(): string {
    const tail = stripVTControlCharacters(this.#tail);
    const start = tail.lastIndexOf(NEST_ERROR);
    return start < 0 ? tail.slice(-MAX_MESSAGE_LENGTH) : tail.slice(start + NEST_ERROR.length);
  }
}

/**
 * The error in the one line of `ConsoleLogger({ json: true })`: Nest 12 has a field for it, Nest 11
 * has it as text in the message.
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

/** Until now `early-boot.cts` was on the watch, for errors of files that are loaded before this one. */
function takeOverFromEarlyBoot(): void {
  const handOver: unknown = Reflect.get(globalThis, Symbol.for('nestjs-cluster.early-boot'));
  if (typeof handOver === 'function') handOver();
}
