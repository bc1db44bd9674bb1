import type { Answer } from '../question.js';

/**
 * Keys and values, without an order. What is there all the while comes at least once.
 *
 * @param keysFrom asks for a part of the keys.
 * @throws Error where the hub does not answer: what came before is not all.
 */
export async function* entriesOf(
  keysFrom: (from: number) => Promise<Answer | undefined>,
  get: (key: string) => Promise<{ readonly value: unknown } | undefined>,
): AsyncGenerator<[key: string, value: unknown]> {
  let from = 0;
  do {
    const answer = await keysFrom(from);
    if (answer?.header.t !== 'keys') throw new Error('the hub does not tell what a cache holds');
    for (const key of answer.header.keys) {
      const found = await get(key);
      if (found !== undefined) yield [key, found.value];
    }
    from = answer.header.next;
  } while (from !== 0);
}
