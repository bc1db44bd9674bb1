/** Numbers that a seed alone decides (mulberry32). */
export class Random {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** 0 up to, and without, 1. */
  ratio() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  between(least, most) {
    return least + Math.floor(this.ratio() * (most - least + 1));
  }

  of(values) {
    return values[this.between(0, values.length - 1)];
  }

  shuffled(values) {
    const rest = [...values];
    return values.map(() => rest.splice(this.between(0, rest.length - 1), 1)[0]);
  }
}
