const MS_PER_S = 1_000;
const NS_PER_MS = 1_000_000;

/** Time in ms of a clock that all threads of a process share. `performance.now()` differs between threads. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * MS_PER_S + nanoseconds / NS_PER_MS;
}
