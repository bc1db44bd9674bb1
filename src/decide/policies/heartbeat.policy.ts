/** The time between two pings. Figures in `/health` are as old as the last ping. A shorter time costs CPU in idle workers. */
export const PING_INTERVAL_MS = 1_000;

/** The facts about a worker that may be hung; times are monotonic ms. */
export interface Silence {
  /** When the unanswered ping was sent; `undefined` if every ping has been answered. */
  readonly pingSentAt: number | undefined;
  /** When the current block of the event loop began, according to the watchdog. */
  readonly blockedSince: number | undefined;
  /** Whether a debugger may be attached. A debugger may stop the event loop on purpose. */
  readonly debugged: boolean;
}

/**
 * Whether a worker with an unanswered ping is hung: the ping is at least `timeoutMs` old, or the
 * event loop has been blocked for that long. A block may begin before the ping.
 */
export function isHung(
  { pingSentAt, blockedSince, debugged }: Silence,
  now: number,
  timeoutMs: number,
): boolean {
  if (pingSentAt === undefined || debugged) return false;
  return now - Math.min(pingSentAt, blockedSince ?? Infinity) >= timeoutMs;
}

/**
 * Whether the primary's own tick came too late (suspend, SIGSTOP, a blocked primary). After a late
 * tick, workers' answers may still be unread, so no worker may be judged.
 */
export function isTickLate(lastTickAt: number, now: number): boolean {
  return now - lastTickAt > 2 * PING_INTERVAL_MS;
}
