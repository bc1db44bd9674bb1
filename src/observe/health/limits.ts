import type { HealthIndicatorResult } from '@nestjs/terminus';
import type { Terminus } from './terminus.js';

/** Above this share of its limit, a measurement is degraded. */
const DEGRADED_RATIO = 0.8;

/** A number of a report with its name and its limit. */
export interface Measurement {
  readonly name: string;
  readonly value: number;
  /** Default: no limit. */
  readonly limit: number | undefined;
}

/** A status, with the reason if the status is not up. */
interface Judgement {
  readonly status: 'up' | 'degraded' | 'down';
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
}

/** The worst measurement decides: above its limit the status is down, near its limit degraded. */
export function judge(measurements: readonly Measurement[]): Judgement {
  const near: string[] = [];
  const above: string[] = [];
  for (const { name, value, limit = Infinity } of measurements) {
    if (value > limit) above.push(`${name} is ${value}, above its limit of ${limit}`);
    else if (value > DEGRADED_RATIO * limit)
      near.push(`${name} is ${value}, near its limit of ${limit}`);
  }
  if (above.length > 0) return { status: 'down', message: [...above, ...near].join('; ') };
  if (near.length > 0) return { status: 'degraded', message: near.join('; ') };
  return { status: 'up' };
}

/** A report with its status. Before terminus 12, which introduced `degraded`, a degraded report is up. */
export function reportOf<Key extends string>(
  { knowsDegraded }: Pick<Terminus, 'knowsDegraded'>,
  key: Key,
  { status, ...why }: Judgement,
  report: object,
): HealthIndicatorResult<Key> {
  const known = status === 'degraded' && !knowsDegraded ? 'up' : status;
  return { [key]: { ...report, ...why, status: known } } as HealthIndicatorResult<Key>;
}
