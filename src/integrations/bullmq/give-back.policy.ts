/** A job that no consumer can run fails after this many starts. That takes about an hour. */
export const MAX_STARTS = 138;
const FIRST_DELAY_MS = 200;
/** The growth of the delays. Small, because early in a rollout few consumers have a new method. */
const GROWTH = 1.25;
const MAX_DELAY_MS = 30_000;

/** The maximum delay for a call. Short, because its caller waits only for seconds. */
const MAX_DELAY_OF_CALL_MS = 1_000;

/**
 * How long a job waits in the queue after a consumer could not run it, in ms. Grows with each
 * start.
 *
 * @param starts how often the job was started, including the current start.
 * @param isCall whether a caller waits for the job.
 * @returns `undefined` after {@link MAX_STARTS} starts, if no caller waits.
 */
export function giveBackForMs(starts: number, isCall: boolean): number | undefined {
  const delayMs = Math.round(FIRST_DELAY_MS * GROWTH ** (starts - 1));
  if (isCall) return Math.min(MAX_DELAY_OF_CALL_MS, delayMs);
  return starts > MAX_STARTS ? undefined : Math.min(MAX_DELAY_MS, delayMs);
}
