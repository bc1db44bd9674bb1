/** What is known of a worker's silence; monotonic ms. */
export interface Silence {
  /** When the ping was sent that is not answered yet. */
  readonly pingSentAt: number | undefined;
  /** Since when its watchdog has seen its event loop blocked. */
  readonly blockedSince: number | undefined;
  /** Under a debugger a stopped event loop is what its user wants. */
  readonly debugged: boolean;
}

/**
 * Whether a worker is hung: it owes an answer, and has for `timeoutMs` or was
 * blocked for that long by its watchdog's clock, which begins earlier.
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
 * Whether the primary's own tick came so late (suspend, SIGSTOP, a blocked
 * primary) that answers may be waiting unread: judgement must be postponed.
 */
export function isTickLate(
  lastTickAt: number,
  now: number,
  intervalMs: number,
  timeoutMs = Infinity,
): boolean {
  // Well before the time is up of who was pinged last, where that is less than two intervals away.
  const toleranceMs = Math.min(intervalMs, (timeoutMs - intervalMs) / 2);
  return now - lastTickAt > intervalMs + toleranceMs;
}
