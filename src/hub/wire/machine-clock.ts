/**
 * Turns `performance.now()` into the time of the machine's monotonic clock. Both
 * `performance.now()` and `hrtime` read this clock, but the former starts at 0 in each thread and
 * process.
 */
const OFFSET_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Monotonic time in ms. It is the same in all processes of this machine. */
export function machineMs(): number {
  return performance.now() + OFFSET_MS;
}
