/** The clusters that the variables at the top of the dashboard have chosen. */
export const CHOSEN = 'job=~"$job", instance=~"$instance"';

/** Series of a metric in the chosen clusters. */
export function select(metric: string, matchers = ''): string {
  return `${metric}{${[CHOSEN, matchers].filter(Boolean).join(', ')}}`;
}

/** How fast a counter grows, per second. */
export function rate(counter: string, matchers = ''): string {
  return `rate(${select(counter, matchers)}[$__rate_interval])`;
}

/** A quantile of a histogram, for each value of `labels`. */
export function quantile(q: number, histogram: string, ...labels: string[]): string {
  return `histogram_quantile(${q}, sum by (${['le', ...labels].join(', ')}) (${rate(`${histogram}_bucket`)}))`;
}

/** The mean of a histogram or summary, for each value of `labels`. */
export function mean(histogram: string, ...labels: string[]): string {
  const sum = (part: string) => `sum by (${labels.join(', ')}) (${rate(`${histogram}_${part}`)})`;
  return `${sum('sum')} / ${sum('count')}`;
}

/** The largest over the mean of some series: 1 where they are all alike. */
export function unevenness(vector: string): string {
  return `max by (job, instance) (${vector}) / avg by (job, instance) (${vector})`;
}
