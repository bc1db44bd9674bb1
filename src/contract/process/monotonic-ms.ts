const MS_PER_S = 1_000;
const NS_PER_MS = 1_000_000;

/** Ms of the clock that all threads of a process have in common: each has a `performance.now()` of its own. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * MS_PER_S + nanoseconds / NS_PER_MS;
}
