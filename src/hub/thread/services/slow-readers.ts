import type { Peer } from './peer.js';

/** An answer to a sender that waits for slow readers. */
interface HeldAnswer {
  readonly since: number;
  readonly waitsFor: Set<Peer>;
  readonly answer: () => void;
}

/** A reader that has more to read is sent nothing. */
const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;

/** The longest wait for a reader to catch up. */
const PATIENCE_MS = 2_000;

/**
 * Holds the answer to a sender while a reader is behind. So a sender that awaits its answers sends
 * no faster than the slowest reader reads. A reader that reads nothing is waited for once.
 */
export class SlowReaders {
  /** By reader, the answers that wait for it, oldest first. */
  readonly #held = new Map<Peer, Set<HeldAnswer>>();
  readonly #givenUp = new Set<Peer>();

  /** @returns whether the reader can be sent something. */
  accepts(reader: Peer): boolean {
    if (!reader.congested) return true;
    return !this.#givenUp.has(reader) && reader.unsentBytes <= MAX_BACKLOG_BYTES;
  }

  /** @param answer is called once none of the readers is behind, perhaps at once. */
  answerAfter(readers: readonly Peer[], answer: () => void, now: number): void {
    const waitsFor = new Set(readers.filter((each) => each.congested && !this.#givenUp.has(each)));
    if (waitsFor.size === 0) return answer();
    const held = { since: now, waitsFor, answer };
    for (const reader of waitsFor) {
      const others = this.#held.get(reader);
      if (others === undefined) this.#held.set(reader, new Set([held]));
      else others.add(held);
    }
  }

  /** The reader has caught up, or is gone. */
  release(reader: Peer): void {
    this.#givenUp.delete(reader);
    this.#answerFor(reader);
  }

  sweep(now: number): void {
    for (const [reader, [oldest]] of this.#held) {
      if (oldest!.since + PATIENCE_MS > now) continue;
      this.#givenUp.add(reader);
      this.#answerFor(reader);
    }
  }

  #answerFor(reader: Peer): void {
    const held = this.#held.get(reader);
    if (held === undefined) return;
    this.#held.delete(reader);
    for (const { waitsFor, answer } of held) {
      waitsFor.delete(reader);
      if (waitsFor.size === 0) answer();
    }
  }
}
