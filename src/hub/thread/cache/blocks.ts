import { release } from '../../wire/codec.js';

/** A small value wastes little of a block, and a large value needs few of them. */
const BLOCK_BYTES = 256;

/** The size of a block and of the number of the block after it. */
export const BLOCK_COST_BYTES = BLOCK_BYTES + 4;

const BLOCK_WORDS = BLOCK_BYTES / 4;
const PAGE_BITS = 12;
const PAGE_BLOCKS = 1 << PAGE_BITS;

/** The first block of each page stays unused, so no block has the number 0. */
const FIRST = 1;

interface Page {
  readonly bytes: Buffer;
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  /** The block after each block, in a chain or in the list of free blocks. */
  readonly next: Int32Array;
  firstFree: number;
  /** The blocks from here on were never used: the system has not given memory for them yet. */
  firstFresh: number;
  room: number;
  /** The number of checks in a row that found the page empty. */
  emptyChecks: number;
}

/** A page that was just emptied is likely to be used again soon, so it is kept for this many checks. */
const KEPT_CHECKS = 5;

/** Pages that one check gives back at most. Each takes 0.1 ms. */
const MAX_GIVEN_BACK = 32;

/**
 * Memory in blocks that are used again and again. A larger value takes a chain of them. V8 has nothing
 * to collect here; with one `Buffer` a value it would let the process grow to several times the size of
 * the values, and stop the thread to collect. Pages with low numbers are filled first, so that others
 * become empty when less is kept, and are given back. The number 0 means no block.
 */
export class Blocks {
  /** `undefined` if the page was given back. */
  readonly #pages: (Page | undefined)[] = [];
  /** All pages before it are full. */
  #lowest = 0;
  #used = 0;

  /** Blocks in use. */
  get used(): number {
    return this.#used;
  }

  static countFor(bytes: number): number {
    return Math.ceil(bytes / BLOCK_BYTES);
  }

  /** @returns the first block of a chain of `count` blocks; 0 for an empty one. */
  take(count: number): number {
    let first = 0;
    let last = 0;
    for (let left = count; left > 0; left -= 1) {
      const block = this.#takeOne();
      if (first === 0) first = block;
      else this.#link(last, block);
      last = block;
    }
    if (last !== 0) this.#link(last, 0);
    this.#used += count;
    return first;
  }

  /** Frees a chain. Its blocks keep their order, so a value of the same size lies in as few pieces. */
  free(first: number): void {
    for (let begin = first; begin !== 0;) {
      const at = begin >> PAGE_BITS;
      const page = this.#pages[at]!;
      let last = begin;
      let count = 1;
      let next = this.#next(last);
      for (; next !== 0 && next >> PAGE_BITS === at; count += 1) {
        last = next;
        next = this.#next(last);
      }
      this.#link(last, page.firstFree);
      page.firstFree = begin;
      page.room += count;
      this.#used -= count;
      this.#lowest = Math.min(this.#lowest, at);
      begin = next;
    }
  }

  /** Frees all chains. */
  clear(): void {
    for (const page of this.#pages) {
      if (page !== undefined) Object.assign(page, EMPTY);
    }
    this.#lowest = 0;
    this.#used = 0;
  }

  /** To be called each second. Gives back the memory of pages that have been empty for a while. */
  trim(): void {
    let left = MAX_GIVEN_BACK;
    for (const [at, page] of this.#pages.entries()) {
      if (page === undefined) continue;
      page.emptyChecks = page.room === EMPTY.room ? page.emptyChecks + 1 : 0;
      if (page.emptyChecks < KEPT_CHECKS || left === 0) continue;
      left -= 1;
      this.#pages[at] = undefined;
      release(page.bytes);
    }
  }

  /** A 32-bit number in a block. */
  word(block: number, at: number): number {
    return this.#pageOf(block).words[(block % PAGE_BLOCKS) * BLOCK_WORDS + at]!;
  }

  setWord(block: number, at: number, value: number): void {
    this.#pageOf(block).words[(block % PAGE_BLOCKS) * BLOCK_WORDS + at] = value;
  }

  /** @param at an even number: a double takes the room of two words. */
  double(block: number, at: number): number {
    return this.#pageOf(block).doubles[((block % PAGE_BLOCKS) * BLOCK_WORDS + at) / 2]!;
  }

  setDouble(block: number, at: number, value: number): void {
    this.#pageOf(block).doubles[((block % PAGE_BLOCKS) * BLOCK_WORDS + at) / 2] = value;
  }

  write(first: number, offset: number, from: Buffer): void {
    let done = 0;
    for (const piece of this.#pieces(first, offset, from.length)) done += from.copy(piece, 0, done);
  }

  /** @returns a view if the bytes lie in one piece. It is valid until the next write or free. */
  read(first: number, offset: number, length: number): Buffer {
    const pieces = this.#pieces(first, offset, length);
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, length);
  }

  /** Views of the bytes of a chain. Neighbouring blocks are one piece. */
  #pieces(first: number, offset: number, length: number): Buffer[] {
    const pieces: Buffer[] = [];
    let block = first;
    let skipped = offset;
    for (; skipped >= BLOCK_BYTES; skipped -= BLOCK_BYTES) block = this.#next(block);
    for (let left = length; left > 0;) {
      const { bytes } = this.#pageOf(block);
      const at = (block % PAGE_BLOCKS) * BLOCK_BYTES + skipped;
      let size = BLOCK_BYTES - skipped;
      // The next page begins with an unused block, so neighbours are always of one page.
      for (; size < left && this.#next(block) === block + 1; size += BLOCK_BYTES) block += 1;
      size = Math.min(size, left);
      pieces.push(bytes.subarray(at, at + size));
      left -= size;
      block = this.#next(block);
      skipped = 0;
    }
    return pieces;
  }

  #takeOne(): number {
    const at = this.#pageWithRoom();
    const page = this.#pages[at]!;
    page.room -= 1;
    if (page.firstFree === 0) {
      page.firstFresh += 1;
      return at * PAGE_BLOCKS + page.firstFresh - 1;
    }
    const block = page.firstFree;
    page.firstFree = this.#next(block);
    return block;
  }

  /** @returns the lowest page that has room. */
  #pageWithRoom(): number {
    for (; this.#lowest < this.#pages.length; this.#lowest += 1) {
      if ((this.#pages[this.#lowest]?.room ?? 0) > 0) return this.#lowest;
    }
    const gap = this.#pages.indexOf(undefined);
    this.#lowest = gap === -1 ? this.#pages.length : gap;
    this.#pages[this.#lowest] = newPage();
    return this.#lowest;
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

const EMPTY = { firstFree: 0, firstFresh: FIRST, room: PAGE_BLOCKS - FIRST, emptyChecks: 0 };

function newPage(): Page {
  // All in one piece: a small allocation next to it would survive it, and keep the system from
  // taking back the memory around it.
  const memory = new ArrayBuffer(PAGE_BLOCKS * BLOCK_COST_BYTES);
  return {
    bytes: Buffer.from(memory),
    words: new Int32Array(memory),
    doubles: new Float64Array(memory),
    next: new Int32Array(memory, PAGE_BLOCKS * BLOCK_BYTES),
    ...EMPTY,
  };
}
