import type { Clock, Due } from './clock.js';

/** Runs `life` with simulated timers, clocks and random numbers in place of Node's own. */
export function inWorldTime<T>(clock: Clock, seed: number, life: () => T): T {
  const own = { setTimeout, clearTimeout, setInterval, clearInterval };
  const { hrtime } = process;
  const { random } = Math;
  Object.assign(globalThis, {
    setTimeout: (run: () => void, ms = 1) => new WorldTimer(clock, run, ms),
    setInterval: (run: () => void, ms: number) => new WorldTimer(clock, run, ms, true),
    clearTimeout: cancel,
    clearInterval: cancel,
  });
  performance.now = () => clock.now;
  const time = () => [Math.floor(clock.now / 1e3), (clock.now % 1e3) * 1e6];
  process.hrtime = Object.assign(time, { bigint: () => hrtime.bigint() }) as typeof hrtime;
  let last = seed;
  Math.random = () => (last = (Math.imul(last, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  try {
    return life();
  } finally {
    Object.assign(globalThis, own);
    Reflect.deleteProperty(performance, 'now'); // Node's own `now` is on the prototype
    process.hrtime = hrtime;
    Math.random = random;
  }
}

/** A timer in simulated time. As in Node, its delay is in whole milliseconds and at least 1. */
class WorldTimer {
  #due: Due;

  constructor(clock: Clock, run: () => void, ms: number, repeats = false) {
    const arm = (): Due =>
      clock.in(
        Math.max(1, Math.trunc(ms)),
        () => {
          if (repeats) this.#due = arm();
          run();
        },
        'timer',
      );
    this.#due = arm();
  }

  cancel(): void {
    this.#due.cancelled = true;
  }

  unref(): this {
    return this;
  }
}

function cancel(timer: WorldTimer | undefined): void {
  timer?.cancel();
}
