import { writeSync } from 'node:fs';
import type { Writable } from 'node:stream';

/** The limit of text that waits for a slow reader; a line beyond it is lost. */
const MAX_QUEUED_LENGTH = 2 ** 20;

/** The time between two tries to log the loss. */
const SAY_MS = 1_000;

/** Lines that a stream did not take. */
export interface LostLines {
  readonly lines: number;
  /** Code of the last error. */
  readonly code: string;
  /** The time since the first loss. */
  readonly forMs: number;
}

/** The used part of Node's standard streams; `_type` and `_handle` are Node's internals. */
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
 * A standard stream whose errors end nothing. It counts the lines that cannot be written, and logs
 * their number as soon as it can. If nobody else listens for errors, the stream itself gets none:
 * Node would otherwise drop all text written in the same turn of the event loop, and detach the
 * output of each thread for good.
 */
export class GuardedStream {
  /** Lines lost since the process started. */
  dropped = 0;
  #unsaid: { lines: number; code: string; readonly since: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether the line that is being written reports the loss. */
  #saying = false;
  /** Whether the last write ended within a line. */
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
      // An error of an ended or destroyed stream, which no write has reported.
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

  /** Node's own function treats a line as written if a full disk took only a part of it. */
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

  /** Tries to log the loss. A failed try does not count as a lost line. */
  #say(): void {
    // The line would only wait behind the text that waits for a reader.
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
