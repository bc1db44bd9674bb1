import { readOomKills } from '../../contract/options/index.js';

/** Tells kills for want of memory from others: the kernel counts them for the control group. */
export class OomWatch {
  #seen: number | undefined;

  constructor(private readonly count: () => number | undefined = readOomKills) {
    this.#seen = count();
  }

  /** Whether the kernel has killed for want of memory since this was last asked. */
  hasKilled(): boolean {
    const before = this.#seen;
    const now = this.count();
    // Unreadable for want of a descriptor: the next reading is compared with the last known one.
    this.#seen = now ?? before;
    return before !== undefined && now !== undefined && now > before;
  }
}
