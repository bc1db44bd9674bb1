import type { Readable } from 'node:stream';
import type { WorkerIdentity } from '../snapshot/index.js';

/** A Nest app writes some kilobytes while it starts. */
const MAX_BYTES = 64 * 1024;

const LINE_BREAK = 10;

/** What a worker wrote, as far as it was kept. */
export interface KeptText {
  readonly text: string;
  /** How much came before it. */
  readonly missingBytes: number;
}

/** Has what a worker kept back be seen. */
export type ShowOutput = (worker: WorkerIdentity, kept: KeptText) => void;

/** The end of what is written: whole lines, and no more than {@link MAX_BYTES}. */
export class LastLines {
  #chunks: Buffer[] = [];
  #length = 0;
  #missing = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    while (this.#length - this.#chunks[0]!.length >= MAX_BYTES) {
      const { length } = this.#chunks.shift()!;
      this.#length -= length;
      this.#missing += length;
    }
  }

  read(): KeptText {
    const all = Buffer.concat(this.#chunks);
    const surplus = all.length - MAX_BYTES;
    let start = Math.max(0, surplus);
    const isCut = this.#missing + start > 0;
    // A line that has lost its beginning is lost; one that is longer than all that is kept is not.
    if (isCut) start = all.indexOf(LINE_BREAK, Math.max(0, start - 1)) + 1 || start;
    return { text: all.toString('utf8', start), missingBytes: this.#missing + start };
  }
}

/** What a worker sends of its output until it is ready. See `boot-output.cts`. */
export class BootOutput {
  /** Resolves once nothing more comes. */
  readonly ended: Promise<void>;
  #lines = new LastLines();

  constructor(private readonly pipe: Readable) {
    pipe.on('data', (chunk: Buffer) => this.#lines.add(chunk));
    // The worker is gone: its exit tells.
    pipe.on('error', () => {});
    this.ended = new Promise((resolve) => pipe.once('close', resolve));
  }

  /** Shows what it wrote, if it wrote anything. */
  show(worker: WorkerIdentity, show: ShowOutput): void {
    const kept = this.#lines.read();
    if (kept.text !== '') show(worker, kept);
  }

  /** The worker is up. One that does not know of this pipe writes to its own output from now on. */
  drop(): void {
    this.pipe.destroy();
    this.#lines = new LastLines();
  }
}
