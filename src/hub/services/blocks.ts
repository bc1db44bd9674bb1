/** The unit of room: small enough for a small value, large enough for few of them in a large one. */
const BLOCK_BYTES = 256;

/** A block and the number of the one after it. */
export const BLOCK_COST_BYTES = BLOCK_BYTES + 4;

const BLOCK_WORDS = BLOCK_BYTES / 4;
const PAGE_BITS = 12;
const PAGE_BLOCKS = 1 << PAGE_BITS;

interface Page {
  readonly bytes: Buffer;
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  /** Of each block the one after it, in a chain or among those that are free. */
  readonly next: Int32Array;
}

/**
 * Memory in blocks that are used again and again, chained for what is larger. So V8 has nothing to
 * collect: it would let the process grow to several times of what is kept before it does, and stop the
 * thread meanwhile. Blocks have numbers from 1 on; 0 is none.
 */
export class Blocks {
  readonly #pages: Page[] = [];
  #firstFree = 0;
  /** Neither this one nor those behind it were ever used: their memory is not taken yet. */
  #firstFresh = 1;
  #used = 0;

  /** Blocks in use. */
  get used(): number {
    return this.#used;
  }

  static countFor(bytes: number): number {
    return Math.ceil(bytes / BLOCK_BYTES);
  }

  /** @returns the first of a chain of so many. */
  take(count: number): number {
    let first = 0;
    let last = 0;
    for (let left = count; left > 0; left -= 1) {
      const block = this.#takeOne();
      if (last === 0) first = block;
      else this.#link(last, block);
      last = block;
    }
    this.#link(last, 0);
    this.#used += count;
    return first;
  }

  /** Frees a chain. Its blocks stay in their order: one of the same length is as much in one piece. */
  free(first: number): void {
    let last = first;
    let count = 1;
    for (let next = this.#next(last); next !== 0; next = this.#next(last)) {
      last = next;
      count += 1;
    }
    this.#link(last, this.#firstFree);
    this.#firstFree = first;
    this.#used -= count;
  }

  /** Frees all. */
  clear(): void {
    this.#firstFree = 0;
    this.#firstFresh = 1;
    this.#used = 0;
  }

  /** One of the words that a block has. */
  word(block: number, at: number): number {
    return this.#pageOf(block).words[(block % PAGE_BLOCKS) * BLOCK_WORDS + at]!;
  }

  setWord(block: number, at: number, value: number): void {
    this.#pageOf(block).words[(block % PAGE_BLOCKS) * BLOCK_WORDS + at] = value;
  }

  /** In the room of two words, from an even one on. */
  double(block: number, at: number): number {
    return this.#pageOf(block).doubles[((block % PAGE_BLOCKS) * BLOCK_WORDS + at) / 2]!;
  }

  setDouble(block: number, at: number, value: number): void {
    this.#pageOf(block).doubles[((block % PAGE_BLOCKS) * BLOCK_WORDS + at) / 2] = value;
  }

  write(first: number, offset: number, from: Buffer): void {
    this.#walk(first, offset, from.length, (bytes, at, length, done) => {
      from.copy(bytes, at, done, done + length);
    });
  }

  equals(first: number, offset: number, other: Buffer): boolean {
    let equal = true;
    this.#walk(first, offset, other.length, (bytes, at, length, done) => {
      equal &&= other.compare(bytes, at, at + length, done, done + length) === 0;
    });
    return equal;
  }

  /** @returns a view, where the bytes lie in one piece: it is right until something is written or freed. */
  read(first: number, offset: number, length: number): Buffer {
    let whole: Buffer | undefined;
    this.#walk(first, offset, length, (bytes, at, size, done) => {
      if (size === length) whole = bytes.subarray(at, at + size);
      else bytes.copy((whole ??= Buffer.allocUnsafe(length)), done, at, at + size);
    });
    return whole ?? Buffer.alloc(0);
  }

  /** Blocks that lie beside each other are one piece. */
  #walk(
    first: number,
    offset: number,
    length: number,
    visit: (bytes: Buffer, at: number, length: number, done: number) => void,
  ): void {
    let block = first;
    let skipped = offset;
    for (; skipped >= BLOCK_BYTES; skipped -= BLOCK_BYTES) block = this.#next(block);
    if (skipped + length <= BLOCK_BYTES) {
      const at = (block % PAGE_BLOCKS) * BLOCK_BYTES + skipped;
      return visit(this.#pageOf(block).bytes, at, length, 0);
    }
    for (let done = 0; done < length;) {
      const { bytes } = this.#pageOf(block);
      const at = (block % PAGE_BLOCKS) * BLOCK_BYTES + skipped;
      let size = BLOCK_BYTES - skipped;
      let next = this.#next(block);
      while (done + size < length && next === block + 1 && next % PAGE_BLOCKS !== 0) {
        block = next;
        size += BLOCK_BYTES;
        next = this.#next(block);
      }
      size = Math.min(size, length - done);
      visit(bytes, at, size, done);
      done += size;
      block = next;
      skipped = 0;
    }
  }

  #takeOne(): number {
    const block = this.#firstFree;
    if (block !== 0) {
      this.#firstFree = this.#next(block);
      return block;
    }
    const fresh = this.#firstFresh;
    if (fresh >> PAGE_BITS === this.#pages.length) this.#pages.push(newPage());
    this.#firstFresh += 1;
    return fresh;
  }

  #pageOf(block: number): Page {
    return this.#pages[block >> PAGE_BITS]!;
  }

  #next(block: number): number {
    return this.#pageOf(block).next[block % PAGE_BLOCKS]!;
  }

  #link(block: number, next: number): void {
    this.#pageOf(block).next[block % PAGE_BLOCKS] = next;
  }
}

function newPage(): Page {
  const memory = new ArrayBuffer(PAGE_BLOCKS * BLOCK_BYTES);
  return {
    bytes: Buffer.from(memory),
    words: new Int32Array(memory),
    doubles: new Float64Array(memory),
    next: new Int32Array(PAGE_BLOCKS),
  };
}
