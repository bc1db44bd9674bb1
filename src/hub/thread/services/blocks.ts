import { release } from '../../wire/codec.js';

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
  firstFree: number;
  /** Neither it nor those behind it were ever used: their memory is not taken yet. */
  firstFresh: number;
  /** How often it was looked at while nothing was in it. */
  idle: number;
}

/** An empty page is kept until it was looked at so often: it is likely to be used again soon. */
const IDLE_LOOKS = 5;

/** Pages that are given back at a time. Each takes 0.1 ms. */
const GIVEN_BACK = 32;

/**
 * Memory in blocks that are used again and again, chained for what is larger. So V8 has nothing to
 * collect: it would let the process grow to several times of what is kept before it does, and stop the
 * thread meanwhile. The lowest pages are filled first: so others become empty when less is kept, and are
 * given back. Blocks have numbers from 1 on; 0 is none.
 */
export class Blocks {
  /** `undefined` where one was given back. */
  readonly #pages: (Page | undefined)[] = [];
  /** Blocks that each page has to give. */
  readonly #room: number[] = [];
  /** Those before it have no room. */
  #lowest = 0;
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
    for (let left = count; left > 0;) {
      const at = this.#roomy();
      const page = this.#pages[at]!;
      const taken = Math.min(left, this.#room[at]!);
      this.#room[at]! -= taken;
      left -= taken;
      for (let n = 0; n < taken; n += 1) {
        const block = takeOne(page, at);
        if (last === 0) first = block;
        else this.#link(last, block);
        last = block;
      }
    }
    this.#link(last, 0);
    this.#used += count;
    return first;
  }

  /** Frees a chain. Its blocks stay in their order: one of the same length is as much in one piece. */
  free(first: number): void {
    for (let begin = first; begin !== 0;) {
      const at = begin >> PAGE_BITS;
      const page = this.#pages[at]!;
      let last = begin;
      let count = 1;
      let next = page.next[last % PAGE_BLOCKS]!;
      for (; next !== 0 && next >> PAGE_BITS === at; count += 1) {
        last = next;
        next = page.next[last % PAGE_BLOCKS]!;
      }
      page.next[last % PAGE_BLOCKS] = page.firstFree;
      page.firstFree = begin;
      this.#room[at]! += count;
      this.#used -= count;
      this.#lowest = Math.min(this.#lowest, at);
      begin = next;
    }
  }

  /** Frees all. */
  clear(): void {
    for (const [at, page] of this.#pages.entries()) {
      if (page === undefined) continue;
      page.firstFree = 0;
      page.firstFresh = firstOf(at);
      this.#room[at] = PAGE_BLOCKS - firstOf(at);
    }
    this.#lowest = 0;
    this.#used = 0;
  }

  /** To be called now and then. Gives back the memory of pages that have been empty for a while. */
  trim(): void {
    let left = GIVEN_BACK;
    for (const [at, page] of this.#pages.entries()) {
      if (page === undefined) continue;
      page.idle = this.#room[at] === PAGE_BLOCKS - firstOf(at) ? page.idle + 1 : 0;
      if (page.idle < IDLE_LOOKS || left === 0) continue;
      left -= 1;
      this.#pages[at] = undefined;
      this.#room[at] = 0;
      release(page.bytes);
    }
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

  /** @returns the lowest page that has room. */
  #roomy(): number {
    while (this.#lowest < this.#room.length && this.#room[this.#lowest] === 0) this.#lowest += 1;
    if (this.#lowest < this.#room.length) return this.#lowest;
    const gap = this.#pages.indexOf(undefined);
    const at = gap === -1 ? this.#pages.length : gap;
    this.#pages[at] = newPage(firstOf(at));
    this.#room[at] = PAGE_BLOCKS - firstOf(at);
    return (this.#lowest = at);
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

/** Block 0 is none. */
function firstOf(page: number): number {
  return page === 0 ? 1 : 0;
}

function takeOne(page: Page, at: number): number {
  const block = page.firstFree;
  if (block !== 0) {
    page.firstFree = page.next[block % PAGE_BLOCKS]!;
    return block;
  }
  page.firstFresh += 1;
  return at * PAGE_BLOCKS + page.firstFresh - 1;
}

function newPage(firstFresh: number): Page {
  // One piece: a small one beside it would be left, and keep its surroundings from the system.
  const memory = new ArrayBuffer(PAGE_BLOCKS * BLOCK_COST_BYTES);
  return {
    bytes: Buffer.from(memory),
    words: new Int32Array(memory),
    doubles: new Float64Array(memory),
    next: new Int32Array(memory, PAGE_BLOCKS * BLOCK_BYTES),
    firstFree: 0,
    firstFresh,
    idle: 0,
  };
}
