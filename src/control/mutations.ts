import { Refusal } from './route.js';

/** Changes of the cluster that clients ask for: one at a time. */
export class Mutations {
  #underWay: { readonly what: string; readonly since: number } | undefined;

  /**
   * It goes on if its client leaves.
   *
   * @param what in words that go on from "there is".
   * @throws Refusal while another one is under way.
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
