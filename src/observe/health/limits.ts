import type { HealthIndicatorResult } from '@nestjs/terminus';
import type { Terminus } from './terminus.js';

/** Above this share of its limit, a measurement is degraded. */
const DEGRADED_RATIO = 0.8;

/** A status, with the reason if the status is not up. */
interface Judgement {
  readonly status: 'up' | 'degraded' | 'down';
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
}

/**
 * Down above the limit, and degraded near it.
 *
 * @param limit default: no limit.
 */
export function judge(name: string, value: number, limit = Infinity): Judgement {
  if (value > limit) {
    return { status: 'down', message: `${name} is ${value}, above its limit of ${limit}` };
  }
  if (value > DEGRADED_RATIO * limit) {
    return { status: 'degraded', message: `${name} is ${value}, near its limit of ${limit}` };
  }
  return { status: 'up' };
}

/** A report with its status. Before terminus 12, which introduced `degraded`, what is degraded is up. */
export function reportOf<Key extends string>(
  { knowsDegraded }: Pick<Terminus, 'knowsDegraded'>,
  key: Key,
  { status, ...why }: Judgement,
  report: object,
): HealthIndicatorResult<Key> {
  const known = status === 'degraded' && !knowsDegraded ? 'up' : status;
  return { [key]: { ...report, ...why, status: known } } as HealthIndicatorResult<Key>;
}
