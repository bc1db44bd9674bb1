import { Refusal } from './route.js';

/** Runs the changes of the cluster that clients ask for, one at a time. */
export class Mutations {
  #underWay: { readonly what: string; readonly since: number } | undefined;

  /**
   * Runs a change. The change goes on if its client leaves.
   *
   * @param what the change in words, such as "a reload".
   * @throws Refusal while another change is under way.
   */
  async run<Result>(what: string, mutate: () => Promise<Result>): Promise<Result> {
    if (this.#underWay !== undefined) throw busy(this.#underWay.what, this.#underWay.since);
    this.#underWay = { what, since: performance.now() };
    try {
      return await mutate();
    } finally {
      this.#underWay = undefined;
    }
  }
}

/** @param since monotonic ms. */
export function busy(what: string, since?: number): Refusal {
  const age = since === undefined ? '' : `, for ${Math.round(performance.now() - since)} ms`;
  return new Refusal(409, 'BUSY', `${what} is under way${age}; ask again when it is over`);
}
