/** A ping that has not been answered. */
export interface OutstandingPing {
  /** Monotonic ms. */
  readonly sentAt: number;
}

/**
 * Whether a worker is hung: it owes an answer for `timeoutMs`. Under a debugger
 * a stopped event loop is what its user wants.
 */
export function isHung(
  ping: OutstandingPing | undefined,
  debugged: boolean,
  now: number,
  timeoutMs: number,
): boolean {
  return ping !== undefined && !debugged && now - ping.sentAt >= timeoutMs;
}

/**
 * Whether the primary's own tick came so late (suspend, SIGSTOP, a blocked
 * primary) that answers may be waiting unread: judgement must be postponed.
 */
export function isTickLate(lastTickAt: number, now: number, intervalMs: number): boolean {
  return now - lastTickAt > 2 * intervalMs;
}
