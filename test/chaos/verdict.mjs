/** Maximum delay with which a death is noticed here on a busy machine. */
const LAG_MS = 1_000;

/**
 * Decides whether a loss is allowed, and by which cause. A loss is allowed only
 *
 * 1. on a connection of a worker that died because of a fault: from the fault on, if the client saw
 *    a sign of life on the connection before the death;
 * 2. on a connection without any answer yet, so that its worker is unknown, if a worker that a
 *    fault was to kill died before the loss;
 * 3. on a connection without any answer yet, while descriptors to accept connections were lacking;
 * 4. if the app itself answered that it had no descriptor, while descriptors were lacking.
 *
 * @param deaths deaths of workers, `{ pid, doomedAt, at, fault }`; `fault` is undefined if no fault
 *   was to kill the worker.
 * @param shortages times without descriptors, `{ from, to }`.
 * @returns the cause that allows the loss, or undefined.
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
