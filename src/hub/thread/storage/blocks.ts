import { release } from '../../wire/codec.js';

/** With this size, small values waste little memory and large values need few blocks. */
const BLOCK_BYTES = 256;

/** The memory of a block: its bytes, and the number of the next block. */
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
  /** For each block, the next block in its chain or in the list of free blocks. */
  readonly next: Int32Array;
  firstFree: number;
  /** The first block that was never used. The OS has given no memory for it or later blocks. */
  firstFresh: number;
  room: number;
  /** The number of checks in a row that found the page empty. */
  emptyChecks: number;
}

/** An empty page is kept for this many checks, because it is likely to be used again soon. */
const KEPT_CHECKS = 5;

/** Maximum number of pages that one check releases. Each page takes 0.1 ms. */
const MAX_GIVEN_BACK = 32;

/**
 * Memory in blocks that are reused. A value takes a chain of blocks, so V8 has nothing to collect.
 * With one `Buffer` per value, the process would grow to several times the size of the values, and
 * garbage collections would stop the thread. Pages with low numbers are filled first. When less is
 * kept, the other pages become empty and are released. The number 0 means no block.
 */
export class Blocks {
  /** The pages by number; `undefined` for a page that was released. */
  readonly #pages: (Page | undefined)[] = [];
  /** The lowest number of a page that may have room. */
  #lowest = 0;
  #used = 0;

  /** The number of blocks in use. */
  get used(): number {
    return this.#used;
  }

  static countFor(bytes: number): number {
    return Math.ceil(bytes / BLOCK_BYTES);
  }

  /** @returns the first block of a chain of `count` blocks; 0 for an empty chain. */
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

  /** Frees a chain. Its blocks stay in order, so the next value in them is read in few pieces. */
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

  /** Releases pages that have been empty for a while. To be called each second. */
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

  /** @param at the index of a word, an even number, because a double takes two words. */
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

  /** @returns a view if the bytes are contiguous; it is valid until the next write or free. */
  read(first: number, offset: number, length: number): Buffer {
    const pieces = this.#pieces(first, offset, length);
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, length);
  }

  /** Views of the bytes of a chain. Adjacent blocks are in one view. */
  #pieces(first: number, offset: number, length: number): Buffer[] {
    const pieces: Buffer[] = [];
    let block = first;
    let skipped = offset;
    for (; skipped >= BLOCK_BYTES; skipped -= BLOCK_BYTES) block = this.#next(block);
    for (let left = length; left > 0;) {
      const { bytes } = this.#pageOf(block);
      const at = (block % PAGE_BLOCKS) * BLOCK_BYTES + skipped;
      let size = BLOCK_BYTES - skipped;
      // The first block of each page is unused, so adjacent blocks are always in one page.
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

  /** @returns the number of the lowest page that has room. */
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
  // One allocation for the whole page. A small separate allocation would outlive the page, and keep
  // the OS from taking back the memory around it.
  const memory = new ArrayBuffer(PAGE_BLOCKS * BLOCK_COST_BYTES);
  return {
    bytes: Buffer.from(memory),
    words: new Int32Array(memory),
    doubles: new Float64Array(memory),
    next: new Int32Array(memory, PAGE_BLOCKS * BLOCK_BYTES),
    ...EMPTY,
  };
}
