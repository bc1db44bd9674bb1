/** One that is sent what others have said. */
interface Reader {
  readonly congested: boolean;
  /** Bytes that it has not read. */
  readonly unsentBytes: number;
}

/** The answer to a sender. It waits for readers. */
interface Held<P> {
  readonly since: number;
  readonly waitsFor: Set<P>;
  readonly answer: () => void;
}

/** A reader that has more to read is sent nothing. */
const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;

/** A reader that has not caught up by then is not waited for. */
const PATIENCE_MS = 2_000;

/**
 * Holds the answer to a sender while a reader is behind. So a sender that awaits its answers sends
 * no faster than the slowest reader reads. A reader that stands still is waited for once.
 */
export class SlowReaders<P extends Reader> {
  /** The answers that wait for a reader, oldest first. */
  readonly #held = new Map<P, Set<Held<P>>>();
  readonly #givenUp = new Set<P>();

  /** @returns whether it can be sent something. */
  accepts(reader: P): boolean {
    if (!reader.congested) return true;
    return !this.#givenUp.has(reader) && reader.unsentBytes <= MAX_BACKLOG_BYTES;
  }

  /** @param answer is called once none of these is behind: perhaps now. */
  answerAfter(readers: readonly P[], answer: () => void, now: number): void {
    const waitsFor = new Set(readers.filter((each) => each.congested && !this.#givenUp.has(each)));
    if (waitsFor.size === 0) return answer();
    const held = { since: now, waitsFor, answer };
    for (const reader of waitsFor) {
      const others = this.#held.get(reader);
      if (others === undefined) this.#held.set(reader, new Set([held]));
      else others.add(held);
    }
  }

  /** It has read on, or is gone. */
  release(reader: P): void {
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

  #answerFor(reader: P): void {
    const held = this.#held.get(reader);
    if (held === undefined) return;
    this.#held.delete(reader);
    for (const { waitsFor, answer } of held) {
      waitsFor.delete(reader);
      if (waitsFor.size === 0) answer();
    }
  }
}
