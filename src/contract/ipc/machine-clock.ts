/**
 * Monotonic ms of a clock that all processes of the machine share: a time that one of them
 * tells is the same to another. `performance.now()` counts from the start of its own process.
 */
export function machineNow(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** What the system clock shows more than a monotonic one, in ms: it changes where that clock is set. */
export function clockMs(): number {
  return Date.now() - performance.now();
}

/** A step of the system clock that is more than two looks at two clocks differ by. */
const STEP_MS = 500;

/** Whether the system clock was set since `clockMs()` was that. */
export function wasClockSet(before: number): boolean {
  return Math.abs(clockMs() - before) >= STEP_MS;
}

/** What is to be added to `performance.now()` of this process. Of some tries the best: it may be held up between two looks. */
export function machineClockMs(): number {
  let [offset, best] = [0, Infinity];
  for (let tries = 0; tries < 10; tries += 1) {
    const before = performance.now();
    const now = machineNow();
    const took = performance.now() - before;
    if (took < best) [offset, best] = [now - before - took / 2, took];
  }
  return offset;
}
