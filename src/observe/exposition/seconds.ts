/** Milliseconds in seconds, the unit of metrics. */
export function seconds<T extends number | null>(ms: T): T {
  // The ms have three decimals at most, so the seconds have six.
  return (ms === null ? null : Math.round(ms * 1_000) / 1e6) as T;
}
