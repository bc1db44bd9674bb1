import { writeSync } from 'node:fs';
import type { Writable } from 'node:stream';

/** Maximum length of the text that waits for a slow reader. Further lines are dropped. */
const MAX_QUEUED_LENGTH = 2 ** 20;

/** One of Node's standard streams; `_type` and `_handle` are internals of Node. */
type StandardStream = Pick<Writable, 'on' | 'write' | '_write' | 'writableLength'> & {
  readonly fd: number;
  readonly isTTY: boolean;
  /** `fs` = a file or a device, `pipe` = a pipe or a socket. */
  readonly _type?: string;
  readonly _handle?: { setBlocking?(blocking: boolean): unknown };
};

/** Key of the guard on its stream. A second `bootstrap()` call in a process shares the guard. */
const GUARD = Symbol.for('nestjs-cluster.guard');

/**
 * Keeps the process alive if its output cannot be written: if the disk is full, the terminal is
 * closed or no process reads the pipe. `dropped` counts the lost lines.
 */
export function guardOutput() {
  const out = GuardedStream.of(process.stdout);
  const err = GuardedStream.of(process.stderr);
  return { out, err, dropped: () => out.dropped + err.dropped };
}

/**
 * Hides write errors of a stream, and counts the lost lines. After an error, Node would
 * drop all text written in the same turn of the event loop, and detach the output of each thread
 * permanently.
 */
export class GuardedStream {
  dropped = 0;

  static of(stream: StandardStream & { [GUARD]?: GuardedStream }): GuardedStream {
    return (stream[GUARD] ??= new GuardedStream(stream));
  }

  private constructor(private readonly stream: StandardStream) {
    // Write errors are handled below, so only a write after the end of the stream emits this event.
    stream.on('error', () => (this.dropped += 1));
    const write = stream._type === 'fs' ? this.#writeFile : stream._write.bind(stream);
    stream._write = (chunk: unknown, encoding, done) => {
      // All processes of a cluster share one pipe, and Node makes it blocking for all of them when a
      // process starts or exits (measured on Node 20 to 26). A write to a full pipe would then block
      // this process until the reader continues.
      if (stream._type === 'pipe') stream._handle?.setBlocking?.(false);
      write(chunk, encoding, (error?: NodeJS.ErrnoException | null) => {
        if (error) this.dropped += linesOf(String(chunk));
        done();
      });
    };
    // Makes Node call `_write` for each chunk.
    Reflect.set(stream, '_writev', null);
  }

  get isTTY(): boolean {
    return this.stream.isTTY;
  }

  /** Writes a log line. The line is dropped if too much text already waits for a slow reader. */
  write(text: string): void {
    if (this.stream.writableLength < MAX_QUEUED_LENGTH) this.stream.write(text);
    else this.dropped += linesOf(text);
  }

  /** Writes a whole chunk. Node's own function reports success even if a full disk accepted only part of it. */
  readonly #writeFile: Writable['_write'] = (chunk: Uint8Array, _encoding, done) => {
    let written = 0;
    try {
      while (written < chunk.length) written += writeSync(this.stream.fd, chunk, written);
    } catch (error) {
      return done(error as Error);
    }
    done();
  };
}

function linesOf(text: string): number {
  return text === '' ? 0 : Math.max(1, text.split('\n').length - 1);
}
