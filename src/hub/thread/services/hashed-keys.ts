/** A key as it is looked for. */
export interface HashedKey {
  readonly text: string;
  /** Two bytes a character, or one. */
  readonly wide: boolean;
  /** Its last bit says whether it is wide: keys of one hash and the same bytes are the same. */
  readonly hash: number;
}

/** Hashes with random numbers: who chooses keys cannot choose many of one hash. */
export class KeyHasher {
  readonly #ofBytes = globalThis.crypto.getRandomValues(new Int32Array(512));

  hash(text: string): HashedKey {
    const ofBytes = this.#ofBytes;
    let hash = text.length;
    let all = 0;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      all |= code;
      hash = Math.imul(hash ^ ofBytes[code & 0xff]! ^ ofBytes[256 + (code >> 8)]!, 0x9e3779b1);
    }
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
    hash ^= hash >>> 13;
    const wide = all > 0xff;
    return { text, wide, hash: wide ? hash | 1 : hash & ~1 };
  }
}

/** Not UTF-8: it has the same bytes for all halves of surrogate pairs. */
export function bytesOf({ text, wide }: HashedKey): Buffer {
  return Buffer.from(text, wide ? 'utf16le' : 'latin1');
}

/** The text of such bytes, of a key of that hash. */
export function textOf(bytes: Buffer, hash: number): string {
  return bytes.toString((hash & 1) === 1 ? 'utf16le' : 'latin1');
}

/** @returns the bytes with which a key of that hash begins; `undefined` where it cannot begin so. */
export function beginning(text: string): (hash: number) => Buffer | undefined {
  const wide = Buffer.from(text, 'utf16le');
  const narrow = Buffer.from(text, 'latin1');
  const isNarrow = narrow.toString('latin1') === text;
  return (hash) => ((hash & 1) === 1 ? wide : isNarrow ? narrow : undefined);
}
