/**
 * The time of a monotonic clock that all processes and threads of the machine share, in ms.
 * `performance.now()` differs between them, because it counts from the start of its own.
 */
export function machineNow(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** The difference between the system clock and a monotonic clock, in ms. It changes when the system clock is set. */
export function clockMs(): number {
  return Date.now() - performance.now();
}

/** The minimum change that counts as a step of the system clock, in ms. Two readings always differ a little. */
const STEP_MS = 500;

/** Whether the system clock was set since `clockMs()` returned `before`. */
export function wasClockSet(before: number): boolean {
  return Math.abs(clockMs() - before) >= STEP_MS;
}

/** The difference between `machineNow()` and `performance.now()` of this process, in ms. */
export function machineClockMs(): number {
  return machineNow() - performance.now();
}
