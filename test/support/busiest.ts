/** The largest number of `times` within any `spanMs`. */
export function busiest(times: readonly number[], spanMs: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.max(
    ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + spanMs).length),
  );
}
