/** How often a job that nobody can run is given back. That takes about an hour. */
export const MAX_STARTS = 138;
const FIRST_DELAY_MS = 200;
/** In a rollout the consumers that have a new method are few at first. */
const GROWTH = 1.25;
const MAX_DELAY_MS = 30_000;

/** A call lasts seconds, and other consumers that cannot run it may take it first. */
const MAX_DELAY_OF_CALL_MS = 1_000;

/**
 * How long a job that this process cannot run stays in the queue: longer each time.
 *
 * @param starts how often it was begun, this time included.
 * @param isCall whether a caller waits for it.
 * @returns `undefined` once it has waited for long enough.
 */
export function giveBackForMs(starts: number, isCall: boolean): number | undefined {
  const delayMs = Math.round(FIRST_DELAY_MS * GROWTH ** (starts - 1));
  if (isCall) return Math.min(MAX_DELAY_OF_CALL_MS, delayMs);
  return starts > MAX_STARTS ? undefined : Math.min(MAX_DELAY_MS, delayMs);
}
