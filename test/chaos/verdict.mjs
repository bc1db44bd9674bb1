/** How much later than it happens a death is seen here, where the machine is busy. */
const LAG_MS = 1_000;

/**
 * What may be lost, and what for. A loss is allowed only
 *
 * 1. on a connection of a worker that a fault was to kill and that has died: from the fault on, if
 *    there was a sign of life on that connection before the death;
 * 2. on a connection that no worker has answered on yet, so that nobody knows whose it is, where a
 *    worker that a fault was to kill has died meanwhile;
 * 3. on such a connection while there were no descriptors to accept it with;
 * 4. where the app itself answers that it had no descriptor, while there were none.
 *
 * @param deaths of workers, `{ pid, doomedAt, at, fault }`; `fault` is undefined where none was to
 *   kill it.
 * @param shortages times without descriptors, `{ from, to }`.
 * @returns the cause that allows it, or undefined.
 */
export function allowance({ since, at, answered, pid, what }, deaths, shortages) {
  const death = deaths.find((each) => {
    if (each.fault === undefined || since > each.at) return false;
    if (pid !== undefined) return each.pid === pid && at >= each.doomedAt;
    return !answered && at >= each.at - LAG_MS;
  });
  if (death) return pid === undefined ? `${death.fault}, owner unknown` : death.fault;
  const starved = shortages.some(({ from, to }) => at >= from && since <= to + LAG_MS);
  if (starved && !answered) return 'no descriptors, not yet accepted';
  return starved && what.includes('EMFILE') ? 'no descriptors, said by the app' : undefined;
}

/**
 * The port of a microservice is closed while no worker is there, as its documentation says: a
 * connection to it may be refused then.
 *
 * @param readies of workers, `{ pid, at }`.
 * @param deaths of all workers, `{ pid, at }`.
 * @returns the cause that allows it, or undefined.
 */
export function refusal({ client, outcome, at }, readies, deaths) {
  if (client !== 'rpc' || outcome !== 'refused') return undefined;
  const gone = new Set(deaths.filter((death) => death.at <= at + LAG_MS).map(({ pid }) => pid));
  const listens = readies.some((ready) => ready.at <= at && !gone.has(ready.pid));
  return listens ? undefined : 'no worker, so no port of the microservice';
}
