/**
 * The sum of a metric's samples on a page in Prometheus text format, with any labels and any
 * `metrics.prefix` before its name; `undefined` if there is none.
 */
export function metricSum(page: string, name: string): number | undefined {
  const samples = [...page.matchAll(new RegExp(`^\\w*${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))];
  return samples.length === 0
    ? undefined
    : samples.reduce((sum, [, value]) => sum + Number(value), 0);
}
