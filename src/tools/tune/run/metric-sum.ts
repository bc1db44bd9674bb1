/**
 * The sum of a metric's samples on a page in Prometheus text format, whatever their labels and
 * whatever `metrics.prefix` stands before its name; `undefined` where there is none.
 */
export function metricSum(page: string, name: string): number | undefined {
  const samples = [...page.matchAll(new RegExp(`^\\w*${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))];
  return samples.length === 0
    ? undefined
    : samples.reduce((sum, [, value]) => sum + Number(value), 0);
}
