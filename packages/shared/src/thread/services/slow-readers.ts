import { MAX_BACKLOG_BYTES, type Peer } from './peer.js';

/** An answer to a sender that waits for slow readers. */
interface HeldAnswer {
  readonly since: number;
  readonly waitsFor: Set<Peer>;
  readonly answer: () => void;
}

/** If a reader reads nothing for this long, senders do not wait for it until it reads again. */
const PATIENCE_MS = 2_000;

/** Maximum time that a sender waits for a reader that reads slowly, in ms. */
const MAX_WAIT_MS = 20_000;

/**
 * Delays the answer to a sender while a reader is congested. So a sender that awaits its answers
 * sends only as fast as its slowest reader reads. For a reader that reads nothing, it waits once.
 */
export class SlowReaders {
  /** For each reader, the answers that wait for it, oldest first, and the time of its last read. */
  readonly #held = new Map<Peer, { readAt: number; readonly answers: Set<HeldAnswer> }>();
  readonly #givenUp = new Set<Peer>();

  /** @returns whether the reader can be sent something. */
  accepts(reader: Peer): boolean {
    if (!reader.congested) return true;
    return !this.#givenUp.has(reader) && reader.unsentBytes <= MAX_BACKLOG_BYTES;
  }

  /** @param answer is called when no sender has to wait for these readers, perhaps at once. */
  answerAfter(readers: readonly Peer[], answer: () => void, now: number): void {
    const waitsFor = new Set(readers.filter((each) => each.congested && !this.#givenUp.has(each)));
    if (waitsFor.size === 0) return answer();
    const held = { since: now, waitsFor, answer };
    for (const reader of waitsFor) {
      const others = this.#held.get(reader);
      if (others === undefined) this.#held.set(reader, { readAt: now, answers: new Set([held]) });
      else others.answers.add(held);
    }
  }

  /** Called when the reader has read something. */
  drained(reader: Peer, now: number): void {
    if (!reader.congested) return this.release(reader);
    this.#givenUp.delete(reader);
    const held = this.#held.get(reader);
    if (held !== undefined) held.readAt = now;
  }

  /** Called when the reader has caught up, or is gone. */
  release(reader: Peer): void {
    this.#givenUp.delete(reader);
    this.#answerFor(reader);
  }

  sweep(now: number): void {
    for (const [reader, { readAt, answers }] of this.#held) {
      const [oldest] = answers;
      const standsStill = readAt + PATIENCE_MS <= now;
      if (standsStill) this.#givenUp.add(reader);
      if (standsStill || oldest!.since + MAX_WAIT_MS <= now) this.#answerFor(reader);
    }
  }

  #answerFor(reader: Peer): void {
    const held = this.#held.get(reader);
    if (held === undefined) return;
    this.#held.delete(reader);
    for (const { waitsFor, answer } of held.answers) {
      waitsFor.delete(reader);
      if (waitsFor.size === 0) answer();
    }
  }
}
