/** The state of an offer, in the low bits of a thread's word. The bits above have the offer's number. */
const OFFERED = 1;
const BEGUN = 2;
const STATE = 3;

const TICKETS = 2 ** 29;

/** The word of a thread without an offer. */
export const NO_PLACE = -1;

/** An offer has a word, and the place of its call in the order of all. */
const FIELDS = 2;

/** A thread has two in turn: one may be made before the last one, which has begun, is taken up. */
const OFFERS_PER_THREAD = 2;

/**
 * Calls that were handed to a thread before it has ended the one that it runs,
 * in memory that all threads of a pool share. Such an offer stands until the
 * thread begins it or the event loop takes it back: each is one step, so that
 * never both do.
 */
export class Offers {
  readonly #words: Int32Array;
  /** Places of no thread. */
  readonly #free: number[] = [];

  constructor(readonly memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  /** @param places one for each thread. */
  static of(places: number): Offers {
    const words = places * OFFERS_PER_THREAD * FIELDS;
    const offers = new Offers(new SharedArrayBuffer(words * Int32Array.BYTES_PER_ELEMENT));
    for (let place = places - 1; place >= 0; place -= 1) offers.#free.push(place);
    return offers;
  }

  /** A place for a thread that starts; `NO_PLACE` where none is left. */
  takePlace(): number {
    return this.#free.pop() ?? NO_PLACE;
  }

  /** The thread that had it has ended. */
  freePlace(place: number): void {
    if (place !== NO_PLACE) this.#free.push(place);
  }

  /**
   * @param ticket rises by one with each offer to that thread.
   * @param order rises with each call.
   */
  make(place: number, ticket: number, order: number): void {
    const at = indexOf(place, ticket);
    Atomics.store(this.#words, at + 1, order | 0);
    Atomics.store(this.#words, at, wordOf(ticket, OFFERED));
  }

  /** @returns whether it has not begun, and never will. */
  takeBack(place: number, ticket: number): boolean {
    return this.#step(indexOf(place, ticket), wordOf(ticket, OFFERED), 0);
  }

  /** A thread that has ended its call begins the next one, unless an older one was offered to another. */
  claim(place: number): void {
    if (place === NO_PLACE) return;
    for (let ticket = 0; ticket < OFFERS_PER_THREAD; ticket += 1) {
      const at = indexOf(place, ticket);
      const word = Atomics.load(this.#words, at);
      if ((word & STATE) === OFFERED && this.#isOldest(at)) {
        this.#step(at, word, (word & ~STATE) | BEGUN);
      }
    }
  }

  /** A thread that has nothing else to do takes up what it finds. @returns whether it may run it. */
  accept(place: number, ticket: number): boolean {
    const at = indexOf(place, ticket);
    this.#step(at, wordOf(ticket, OFFERED), wordOf(ticket, BEGUN));
    return Atomics.load(this.#words, at) === wordOf(ticket, BEGUN);
  }

  #isOldest(at: number): boolean {
    const order = Atomics.load(this.#words, at + 1);
    for (let other = 0; other < this.#words.length; other += FIELDS) {
      const isOffered = (Atomics.load(this.#words, other) & STATE) === OFFERED;
      // As a difference: the order may have gone past the largest number.
      if (isOffered && ((Atomics.load(this.#words, other + 1) - order) | 0) < 0) return false;
    }
    return true;
  }

  #step(at: number, from: number, to: number): boolean {
    return Atomics.compareExchange(this.#words, at, from, to) === from;
  }
}

function indexOf(place: number, ticket: number): number {
  return (place * OFFERS_PER_THREAD + (ticket % OFFERS_PER_THREAD)) * FIELDS;
}

function wordOf(ticket: number, state: number): number {
  return ((ticket % TICKETS) << 2) | state;
}
