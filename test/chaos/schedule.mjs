/** Numbers that a seed alone decides (mulberry32). */
class Random {
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

/**
 * What happens, without end: every kind of fault once, in an order of its own each time. The seed
 * and the kinds decide all of it; when it happens depends on how long recovery takes.
 */
export function* schedule(seed, faults, longestPauseMs) {
  const random = new Random(seed);
  for (;;) {
    for (const fault of random.shuffled(faults)) {
      const parameters = fault.parameters(random);
      yield { fault, parameters, pauseMs: random.between(100, longestPauseMs) };
    }
  }
}

/**
 * The faults of a soak, without end: in each ten minutes two kills, five minutes apart, and a reload
 * between them.
 */
export function* timetable({ kill, reload }, now = Date.now) {
  const begin = now();
  const parameters = { share: 0, workers: 1 };
  for (let tens = 0; ; tens++) {
    for (const [fault, minute] of [
      [kill, 2],
      [reload, 4],
      [kill, 7],
    ]) {
      const at = begin + (tens * 10 + minute) * 60_000;
      yield { fault, parameters, pauseMs: Math.max(0, at - now()) };
    }
  }
}
