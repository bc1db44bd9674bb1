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
export function isTickLate(
  lastTickAt: number,
  now: number,
  intervalMs: number,
  timeoutMs = Infinity,
): boolean {
  // With a short timeout, the tolerance is shorter: it must end well before the newest ping is overdue.
  const toleranceMs = Math.min(intervalMs, (timeoutMs - intervalMs) / 2);
  return now - lastTickAt > intervalMs + toleranceMs;
}
