import type { HealthIndicatorResult } from '@nestjs/terminus';
import type { Judgement } from './limits.js';
import type { Terminus } from './terminus.js';

/** A report with a status. Before terminus 12, which introduced `degraded`, a degraded report is up. */
export function reportAs<Key extends string>(
  terminus: Pick<Terminus, 'knowsDegraded'>,
  key: Key,
  status: Judgement['status'],
  report: Readonly<Record<string, unknown>>,
): HealthIndicatorResult<Key> {
  const known = status === 'degraded' && !terminus.knowsDegraded ? 'up' : status;
  return { [key]: { ...report, status: known } } as HealthIndicatorResult<Key>;
}
