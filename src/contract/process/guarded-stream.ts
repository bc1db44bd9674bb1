import { writeSync } from 'node:fs';
import type { Writable } from 'node:stream';

/** May wait for a reader that does not read; a line on top of it is lost. */
const MAX_QUEUED_LENGTH = 2 ** 20;

/** How often it is tried to say what was lost. */
const SAY_MS = 1_000;

/** Lines that a stream did not take. */
export interface LostLines {
  readonly lines: number;
  /** Code of the last error. */
  readonly code: string;
  /** Since the first of them. */
  readonly forMs: number;
}

/** What of Node's standard streams is used; `_type` and `_handle` are Node's own. */
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

/** The guard of a stream, on the stream itself: two copies of this package still share it. */
const GUARD = Symbol.for('nestjs-cluster.guard');

/**
 * A standard stream whose errors end nothing. What cannot be written is
 * counted, and said in a line of its own as soon as one can be. Where nobody
 * else listens for errors, the stream itself gets none: Node would also drop
 * what is written in the same turn of the event loop, and detach the output of
 * each thread for good.
 */
export class GuardedStream {
  /** Lines lost since the process started. */
  dropped = 0;
  #unsaid: { lines: number; code: string; readonly since: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** What is being written says what was lost. */
  #saying = false;
  /** The last thing that was written is a part of a line. */
  #torn = false;
  #pipes = 0;
  #passedOn: unknown;

  /**
   * The one guard of a stream, however often it is asked for: a second would take the first for a
   * listener of the app.
   *
   * @param describe makes a line of what was lost, or an empty text if it is not to be said; who
   * asked last decides.
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
      // Of a stream that was ended or destroyed: no write has told of it.
      if (error !== this.#passedOn) this.#lose(1, error.code);
    });
    // Each thread's output is piped here, with a listener for errors of the pipe's own.
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

  /** Writes a line of the log, or loses it: nothing is kept without end for a reader that does not read. */
  write(text: string): void {
    if (this.stream.writableLength < MAX_QUEUED_LENGTH) this.stream.write(text);
    else this.#lose(linesOf(text), 'EAGAIN');
  }

  /**
   * All processes of a cluster share one pipe, and Node makes it blocking for all of them where it
   * starts a process and where one exits (measured on Node 20 to 26). A full one would then stop
   * this process until somebody reads.
   */
  #unblock(): void {
    if (this.stream._type === 'pipe') this.stream._handle?.setBlocking?.(false);
  }

  /** Node's own takes the part of a line that a disk has room for as the whole. */
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

  /** Tries; a failure is no line lost. */
  #say(): void {
    // Behind what waits for a reader it would only wait too.
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
