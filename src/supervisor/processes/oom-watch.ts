import { readOomKills } from '../../contract/options/index.js';

/** Detects kills by the kernel's out-of-memory killer, which counts them for each control group. */
export class OomWatch {
  #seen: number | undefined;

  constructor(private readonly count: () => number | undefined = readOomKills) {
    this.#seen = count();
  }

  /** Whether the out-of-memory killer has killed a process since the last call. */
  hasKilled(): boolean {
    const before = this.#seen;
    const now = this.count();
    // If no descriptor is free, the count is unknown. The last known count is kept for comparison.
    this.#seen = now ?? before;
    return before !== undefined && now !== undefined && now > before;
  }
}
