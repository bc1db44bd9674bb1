import type { HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import type { Judgement } from './limits.js';

type Session<Key extends string> = ReturnType<typeof HealthIndicatorService.prototype.check<Key>>;

/** A report with a status. Where terminus has no `degraded` (before 12), such a one is up. */
export function reportAs<Key extends string>(
  session: Session<Key>,
  status: Judgement['status'],
  report: Readonly<Record<string, unknown>>,
): HealthIndicatorResult<Key> {
  if (status === 'down') return session.down(report);
  return status === 'degraded' && knowsDegraded(session)
    ? session.degraded(report)
    : session.up(report);
}

/** Whether this terminus counts `degraded`: one that does not drops what is reported so. */
export function knowsDegraded(session: object): boolean {
  return 'degraded' in session;
}
