/** `performance.now()` begins anew in each thread and process. Node reads both from one clock of the machine. */
const OFFSET_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Monotonic milliseconds, the same in all processes of this machine. */
export function machineMs(): number {
  return performance.now() + OFFSET_MS;
}
