import { writeSync } from 'node:fs';
import type { Writable } from 'node:stream';

/** The maximum length of text that waits for a slow reader. Further lines are lost. */
const MAX_QUEUED_LENGTH = 2 ** 20;

const SAY_MS = 1_000;

export interface LostLines {
  readonly lines: number;
  readonly code: string;
  readonly forMs: number;
}

/** The members of Node's standard streams that this file uses; `_type` and `_handle` are internals of Node. */
export type StandardStream = Pick<
  Writable,
  'on' | 'listenerCount' | 'write' | '_write' | '_writev' | 'writable' | 'writableLength'
> & {
  readonly fd: number;
  readonly isTTY?: boolean;
  /** `fs` = a file or a device, `pipe` = a pipe or a socket. */
  readonly _type?: string;
  readonly _handle?: { setBlocking?(blocking: boolean): unknown };
};

type Done = (error?: Error | null) => void;

/** Key of the guard on its stream. Two copies of this package use the same key, so they share the guard. */
const GUARD = Symbol.for('nestjs-cluster.guard');

/**
 * Guards a standard stream, so that write errors do not end the process. It counts the lines that
 * cannot be written, and logs their number as soon as it can. If nobody else listens for errors,
 * the error is hidden from the stream. Otherwise Node would drop all text written in the same turn
 * of the event loop, and detach the output of each thread permanently.
 */
export class GuardedStream {
  dropped = 0;
  #unsaid: { lines: number; code: string; readonly since: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether the line that is being written reports the loss. */
  #saying = false;
  /** Whether a write ended in the middle of a line. */
  #torn = false;
  #pipes = 0;
  #passedOn: unknown;

  /**
   * The only guard of a stream: a second guard would mistake the first one's error listener for a
   * listener of the app. The latest `describe` makes the line about lost output.
   */
  static of(stream: StandardStream, describe: (lost: LostLines) => string): GuardedStream {
    const guarded = stream as { [GUARD]?: GuardedStream };
    guarded[GUARD] ??= new GuardedStream(stream);
    guarded[GUARD].describe = describe;
    return guarded[GUARD];
  }

  private describe!: (lost: LostLines) => string;

  private constructor(private readonly stream: StandardStream) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // An error of an ended or destroyed stream, which no callback of a write has reported.
      if (error !== this.#passedOn) this.#lose(1, error.code);
    });
    // Node pipes the output of each thread into this stream, and adds an error listener for each pipe.
    stream.on('pipe', () => (this.#pipes += 1));
    stream.on('unpipe', () => (this.#pipes -= 1));
    const write = stream._type === 'fs' ? this.#writeWhole : stream._write.bind(stream);
    const writev = stream._writev?.bind(stream);
    stream._write = (chunk, encoding, done) => {
      this.#unblock();
      write(chunk, encoding, this.#settle([chunk], done));
    };
    if (!writev) return;
    stream._writev = (chunks, done) => {
      this.#unblock();
      const settle = this.#settle(
        chunks.map(({ chunk }) => chunk as unknown),
        done,
      );
      writev(chunks, settle);
    };
  }

  get isTTY(): boolean {
    return this.stream.isTTY === true;
  }

  /** Writes a log line. The line is lost if too much text already waits for a slow reader. */
  write(text: string): void {
    if (this.stream.writableLength < MAX_QUEUED_LENGTH) this.stream.write(text);
    else this.#lose(linesOf(text), 'EAGAIN');
  }

  /**
   * Makes a pipe non-blocking again. All processes of a cluster share one pipe, and Node makes it
   * blocking for all of them when a process starts or exits (measured on Node 20 to 26). A write to
   * a full pipe would then block this process until somebody reads.
   */
  #unblock(): void {
    if (this.stream._type === 'pipe') this.stream._handle?.setBlocking?.(false);
  }

  /** Writes a whole chunk. Node's own function reports success even if a full disk took only a part of it. */
  readonly #writeWhole = (chunk: Uint8Array, _encoding: unknown, done: Done): void => {
    let written = 0;
    try {
      while (written < chunk.length) written += writeSync(this.stream.fd, chunk, written);
    } catch (error) {
      this.#torn ||= written > 0;
      return done(error as Error);
    }
    done();
  };

  #settle(chunks: readonly unknown[], done: Done): Done {
    if (this.#saying) {
      return (error) => {
        if (!error) this.#said();
        done();
      };
    }
    return (error) => {
      if (!error) return done();
      const lines = chunks.reduce<number>((sum, chunk) => sum + linesOf(chunk), 0);
      this.#lose(lines, (error as NodeJS.ErrnoException).code);
      const others = this.stream.listenerCount('error') - 1 - this.#pipes;
      if (others <= 0) return done();
      this.#passedOn = error;
      done(error);
    };
  }

  #lose(lines: number, code = 'unknown error'): void {
    this.dropped += lines;
    this.#unsaid ??= { lines: 0, code, since: performance.now() };
    this.#unsaid.lines += lines;
    this.#unsaid.code = code;
    this.#timer ??= setInterval(() => this.#say(), SAY_MS).unref();
  }

  /** Tries to log the loss. A failed attempt does not count as a lost line. */
  #say(): void {
    // While other text waits for a reader, the line could not be written either.
    if (this.#unsaid === undefined || !this.stream.writable || this.stream.writableLength > 0)
      return;
    const { lines, code, since } = this.#unsaid;
    const line = this.describe({ lines, code, forMs: performance.now() - since });
    this.#saying = true;
    this.stream.write(this.#torn ? `\n${line}` : line);
    this.#saying = false;
  }

  #said(): void {
    this.#unsaid = undefined;
    this.#torn = false;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function linesOf(chunk: unknown): number {
  const text = String(chunk);
  return text === '' ? 0 : Math.max(1, text.split('\n').length - 1);
}
