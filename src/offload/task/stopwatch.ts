/** How exact the CPU time is, in ms. Reading it takes longer than a short call, so it is read at most this often. */
const EXACT_MS = 1;

/** How long something took. */
export interface Elapsed {
  readonly ms: number;
  /**
   * Maximum CPU time in it, in ms. If this is less than `ms`, the process waited for a core or for
   * I/O. It covers the whole process, so other threads may make it too high.
   */
  readonly cpuMs: number;
}

/** Times pieces of synchronous work in one thread. */
export class Stopwatch {
  #readAt = -Infinity;
  #read = { user: 0, system: 0 };

  /** @returns a function that tells how long ago it was returned. */
  start(): () => Elapsed {
    const begunAt = performance.now();
    if (begunAt - this.#readAt > EXACT_MS) {
      this.#readAt = begunAt;
      this.#read = process.cpuUsage();
    }
    return () => {
      const ms = performance.now() - begunAt;
      if (ms <= EXACT_MS) return { ms, cpuMs: ms };
      const { user, system } = process.cpuUsage(this.#read);
      return { ms, cpuMs: Math.min(ms, (user + system) / 1_000) };
    };
  }
}
