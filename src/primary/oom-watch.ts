import { readOomKills } from '../options/index.js';

/** Tells kills for want of memory from others: the kernel counts them for the control group. */
export class OomWatch {
  #seen: number | undefined;

  constructor(private readonly count: () => number | undefined = readOomKills) {
    this.#seen = count();
  }

  /** Whether the kernel has killed for want of memory since this was last asked. */
  hasKilled(): boolean {
    const before = this.#seen;
    this.#seen = this.count();
    return before !== undefined && this.#seen !== undefined && this.#seen > before;
  }
}
