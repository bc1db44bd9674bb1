/**
 * The time of a monotonic clock that all processes and threads of the machine share, in ms.
 * `performance.now()` cannot be compared between them: each counts from its own start.
 */
export function machineNow(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** The difference between `machineNow()` and `performance.now()` of this process, in ms. */
export function machineClockMs(): number {
  return machineNow() - performance.now();
}
