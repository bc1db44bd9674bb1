/** From this share of its limit on, a measurement is a warning. */
const DEGRADED_RATIO = 0.8;

/** A number of a report, by its name there, and what it should not exceed. */
export interface Measurement {
  readonly name: string;
  readonly value: number;
  /** Default: none. */
  readonly limit: number | undefined;
}

/** The combined verdict of measurements: the worst one counts. */
export interface Judgement {
  readonly status: 'up' | 'degraded' | 'down';
  /** The measurements that are too high, and their limits. Missing if all are fine. */
  readonly message?: string;
}

/** Down above a limit, degraded where a limit is near. */
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
