/** How far what is seen of a death, and what its clients see, may be apart. */
const BLUR_MS = 400;

/**
 * What may be lost, and what for. A loss is allowed only
 *
 * 1. on a connection of a worker that a fault was to kill, and that has died between the last sign
 *    of life on that connection and the loss;
 * 2. on a connection that no worker has answered on yet, so that nobody knows whose it is, where a
 *    worker that a fault was to kill has died meanwhile;
 * 3. on such a connection while there were no descriptors to accept it with.
 *
 * @param deaths of workers, `{ pid, at, fault }`; `fault` is undefined where none was to kill it.
 * @param shortages times without descriptors, `{ from, to }`.
 * @returns the cause that allows it, or undefined.
 */
export function allowance({ since, at, answered, pid }, deaths, shortages) {
  const meanwhile = (from, to) => from <= at + BLUR_MS && to >= since - BLUR_MS;
  const death = deaths.find(
    (each) =>
      each.fault !== undefined &&
      meanwhile(each.at, each.at) &&
      (pid === undefined ? !answered : each.pid === pid),
  );
  if (death) return pid === undefined ? `${death.fault}, owner unknown` : death.fault;
  const starved = !answered && shortages.some(({ from, to }) => meanwhile(from, to));
  return starved ? 'no descriptors, not yet accepted' : undefined;
}
