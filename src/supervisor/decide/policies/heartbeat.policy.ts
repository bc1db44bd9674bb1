/** The facts about a worker that may be hung; times are monotonic ms. */
export interface Silence {
  /** When the ping was sent that has no answer yet; `undefined` if there is none. */
  readonly pingSentAt: number | undefined;
  /** When the event loop was blocked, as seen by the watchdog. */
  readonly blockedSince: number | undefined;
  /** Whether a debugger may be attached. It may stop the event loop on purpose. */
  readonly debugged: boolean;
}

/**
 * Whether a worker is hung: it has not answered a ping, and for `timeoutMs` either the ping was
 * open or the event loop blocked. The watchdog may notice a block before the ping is sent.
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
 * Whether the primary's own tick came too late (suspend, SIGSTOP, a blocked primary). Answers may
 * then be unread, so no worker must be judged.
 */
export function isTickLate(
  lastTickAt: number,
  now: number,
  intervalMs: number,
  timeoutMs = Infinity,
): boolean {
  // With a short timeout, the tolerance ends well before the newest ping is overdue.
  const toleranceMs = Math.min(intervalMs, (timeoutMs - intervalMs) / 2);
  return now - lastTickAt > intervalMs + toleranceMs;
}
