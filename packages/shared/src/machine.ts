import { totalmem } from 'node:os';

/**
 * The time of a monotonic clock that all processes and threads of the machine share, in ms.
 * `performance.now()` differs between them, because it counts from the start of its own.
 */
export function machineNow(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** The memory of the machine or of the container. */
export function memoryBytes(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Infinity);
}
