/** By how much a thread is nicer than its process. */
export interface Niceness {
  /** From its beginning. */
  readonly niceIncrement: number;
  /** From when it has loaded what it is to run. */
  readonly niceOnceLoaded: number;
}

/** For the thread that a start waits for: it computes for nobody. */
export const NO_NICER: Niceness = { niceIncrement: 0, niceOnceLoaded: 0 };

/**
 * Calls that wait for the only thread wait for its load. With its nice value it would get next to
 * nothing on a machine whose cores are all taken. On Linux a thread can become nicer by itself;
 * elsewhere it is so from its beginning, or its whole process would be.
 */
export function nicenessOf(
  increment: number,
  isOnly: boolean,
  platform: NodeJS.Platform = process.platform,
): Niceness {
  return isOnly && platform === 'linux'
    ? { niceIncrement: 0, niceOnceLoaded: increment }
    : { niceIncrement: increment, niceOnceLoaded: 0 };
}
