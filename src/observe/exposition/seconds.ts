/** Milliseconds in seconds, the unit of metrics. */
export function seconds<T extends number | null>(ms: T): T {
  // Of a number with three decimals at most: the quotient has six.
  return (ms === null ? null : Math.round(ms * 1_000) / 1e6) as T;
}
