import type { Blocks } from './blocks.js';
import { beginning, textOf } from './hashed-keys.js';

/** Words at the start of an entry. Its key, its form and its value follow. */
export const OLDER = 0;
export const NEWER = 1;
/** The next entry in the same bucket. */
export const BESIDE = 2;
export const HASH = 3;
export const KEY_BYTES = 4;
export const FORM_BYTES = 5;
export const VALUE_BYTES = 6;
export const EXPIRES_AT = 8;
export const HEAD_BYTES = 40;

/** Of the keys in one part. */
const PART_BYTES = 1024 * 1024;

export interface KeysPart {
  readonly keys: string[];
  /** The first bucket after it. */
  readonly next: number;
}

function keyOf(entry: number, blocks: Blocks): string {
  const bytes = blocks.read(entry, HEAD_BYTES, blocks.word(entry, KEY_BYTES));
  return textOf(bytes, blocks.word(entry, HASH));
}

/** Entries of those buckets whose keys begin so. The one that it gives may be removed. */
export function* entriesBeginning(
  prefix: string,
  blocks: Blocks,
  buckets: Int32Array,
): Generator<number> {
  const bytesFor = beginning(prefix);
  for (const first of buckets) {
    for (let entry = first; entry !== 0;) {
      const beside = blocks.word(entry, BESIDE);
      const bytes = bytesFor(blocks.word(entry, HASH));
      const begins =
        bytes !== undefined &&
        blocks.word(entry, KEY_BYTES) >= bytes.length &&
        blocks.equals(entry, HEAD_BYTES, bytes);
      if (begins) yield entry;
      entry = beside;
    }
  }
}

/** Keys of living entries that begin so, of buckets from `from` on, as many as fit into one part. */
export function keysBeginning(
  prefix: string,
  blocks: Blocks,
  buckets: Int32Array,
  { from, to, now }: { readonly from: number; readonly to: number; readonly now: number },
): KeysPart {
  const keys: string[] = [];
  let next = from;
  for (let bytes = 0; next < to && bytes < PART_BYTES; next += 1) {
    for (const entry of entriesBeginning(prefix, blocks, buckets.subarray(next, next + 1))) {
      if (blocks.double(entry, EXPIRES_AT) <= now) continue;
      bytes += blocks.word(entry, KEY_BYTES);
      keys.push(keyOf(entry, blocks));
    }
  }
  return { keys, next };
}
