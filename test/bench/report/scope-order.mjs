/** The articles first, as they lead from one to the next; then what is asked beyond them. */
export const SCOPE_ORDER = [
  'gzip-page',
  'slow',
  'fibonacci',
  'steady',
  'keep-alive',
  'new-connections',
  'cost',
  'evenness',
  'mixed',
  'reloads',
  'kills',
  'scaling',
  'startup',
  'recovery',
  'memory',
  'techempower',
  'soak',
];

/**
 * Sorts results by `order`; scopes that it does not name come last, by name. Variants of a scope,
 * such as one with another Node, follow their scope.
 *
 * @template {{ scope: string }} Item
 * @param {Item[]} results
 */
export function inOrder(results, order = SCOPE_ORDER) {
  const place = ({ scope }) => {
    const index = order.findIndex((name) => scope === name || scope.startsWith(`${name}-`));
    return index === -1 ? order.length : index;
  };
  return results.toSorted((a, b) => place(a) - place(b) || (a.scope < b.scope ? -1 : 1));
}
