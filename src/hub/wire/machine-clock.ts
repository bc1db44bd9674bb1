/** `performance.now()` starts at 0 in each thread and process, but reads the clock of `hrtime`. */
const OFFSET_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Monotonic time in ms. It is the same in all processes of this machine. */
export function machineMs(): number {
  return performance.now() + OFFSET_MS;
}
