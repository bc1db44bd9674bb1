import { writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { warningLine } from '../log/log.js';
import type { ResolvedLogOptions } from '../options/resolve.js';
import type { WorkerIdentity } from '../snapshot/types.js';

/** The maximum length of text that waits for a slow reader. Further lines are lost. */
const MAX_QUEUED_LENGTH = 2 ** 20;

const REPORT_MS = 1_000;

/** One of Node's standard streams; `_type` and `_handle` are internals of Node. */
type StandardStream = Pick<Writable, 'on' | 'write' | '_write' | 'writable' | 'writableLength'> & {
  readonly fd: number;
  readonly isTTY: boolean;
  /** `fs` = a file or a device, `pipe` = a pipe or a socket. */
  readonly _type?: string;
  readonly _handle?: { setBlocking?(blocking: boolean): unknown };
};

/** Key of the guard on its stream. Two copies of this package use the same key, so they share the guard. */
const GUARD = Symbol.for('nestjs-cluster.guard');

/**
 * Keeps the process alive if its output cannot be written: if the disk is full, the terminal is
 * closed or nobody reads the pipe. Each stream later logs how many lines it has lost.
 */
export function guardOutput(log: ResolvedLogOptions, worker?: WorkerIdentity) {
  const guard = (stream: StandardStream, name: string): GuardedStream =>
    GuardedStream.of(stream, (loss) => {
      const warning = { message: `${loss} to ${name}`, ...(worker && { worker }) };
      return warningLine(log, warning, stream);
    });
  const out = guard(process.stdout, 'standard output');
  const err = guard(process.stderr, 'standard error');
  return { out, err, dropped: () => out.dropped + err.dropped };
}

/**
 * Hides write errors from a stream, counts the lines that they lose, and logs their number as soon
 * as it can. After an error, Node would drop all text written in the same turn of the event loop, and
 * detach the output of each thread permanently.
 */
export class GuardedStream {
  dropped = 0;
  #loss: { lines: number; code: string; readonly since: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether the line that is being written reports the loss. */
  #isReport = false;
  /** Whether a write ended in the middle of a line. */
  #torn = false;

  /** The only guard of a stream: a second guard would see no errors. The latest `describe` makes the line about a loss. */
  static of(stream: StandardStream, describe: (loss: string) => string): GuardedStream {
    const guarded = stream as { [GUARD]?: GuardedStream };
    guarded[GUARD] ??= new GuardedStream(stream);
    guarded[GUARD].describe = describe;
    return guarded[GUARD];
  }

  private describe!: (loss: string) => string;

  private constructor(private readonly stream: StandardStream) {
    // Only a write after the end of the stream has this event.
    stream.on('error', ({ code }: NodeJS.ErrnoException) => this.#lose(1, code));
    const write = stream._type === 'fs' ? this.#writeFile : stream._write.bind(stream);
    stream._write = (chunk: unknown, encoding, done) => {
      const isReport = this.#isReport;
      // All processes of a cluster share one pipe, and Node makes it blocking for all of them when a
      // process starts or exits (measured on Node 20 to 26). A write to a full pipe would then block
      // this process until somebody reads.
      if (stream._type === 'pipe') stream._handle?.setBlocking?.(false);
      write(chunk, encoding, (error?: NodeJS.ErrnoException | null) => {
        if (error && !isReport) this.#lose(linesOf(String(chunk)), error.code);
        if (!error && isReport) this.#reported();
        done();
      });
    };
    // Node then calls `_write` for each chunk.
    Reflect.set(stream, '_writev', null);
  }

  get isTTY(): boolean {
    return this.stream.isTTY;
  }

  /** Writes a log line. The line is lost if too much text already waits for a slow reader. */
  write(text: string): void {
    if (this.stream.writableLength < MAX_QUEUED_LENGTH) this.stream.write(text);
    else this.#lose(linesOf(text), 'EAGAIN');
  }

  /** Writes a whole chunk. Node's own function reports success even if a full disk took only a part of it. */
  readonly #writeFile: Writable['_write'] = (chunk: Uint8Array, _encoding, done) => {
    let written = 0;
    try {
      while (written < chunk.length) written += writeSync(this.stream.fd, chunk, written);
    } catch (error) {
      this.#torn ||= written > 0;
      return done(error as Error);
    }
    done();
  };

  #lose(lines: number, code = 'unknown error'): void {
    this.dropped += lines;
    this.#loss ??= { lines: 0, code, since: performance.now() };
    this.#loss.lines += lines;
    this.#loss.code = code;
    this.#timer ??= setInterval(() => this.#report(), REPORT_MS).unref();
  }

  /** Tries to log the loss. A failed attempt does not count as a lost line. */
  #report(): void {
    // While other text waits for a reader, the line could not be written either.
    if (!this.#loss || !this.stream.writable || this.stream.writableLength > 0) return;
    const { lines, code, since } = this.#loss;
    const seconds = Math.ceil((performance.now() - since) / 1_000);
    const what = lines === 1 ? '1 log line' : `${lines} log lines`;
    const line = this.describe(`${what} could not be written (${code}) in the last ${seconds} s`);
    this.#isReport = true;
    this.stream.write(this.#torn ? `\n${line}` : line);
    this.#isReport = false;
  }

  #reported(): void {
    this.#loss = undefined;
    this.#torn = false;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function linesOf(text: string): number {
  return text === '' ? 0 : Math.max(1, text.split('\n').length - 1);
}
