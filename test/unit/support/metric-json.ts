import type { MetricJson, MetricLabels } from '../../../src/contract/snapshot/types.js';

/** Labels, value, and the suffix of its name if it has one. */
type SampleOf = readonly [labels: MetricLabels, value: number, suffix?: string];

export function metric(type: string, name: string, samples: readonly SampleOf[]): MetricJson {
  const values = samples.map(([labels, value, suffix]) => ({
    labels,
    value,
    ...(suffix !== undefined && { metricName: `${name}${suffix}` }),
  }));
  return { name, help: `Help of ${name}`, type, aggregator: 'sum', values };
}

export const counter = (value: number, labels: MetricLabels = {}): MetricJson =>
  metric('counter', 'c', [[labels, value]]);

/** A histogram of one series, from its cumulative counts by upper bound. */
export function histogram(counts: Readonly<Record<string, number>>, sum: number): MetricJson {
  return metric('histogram', 'h', [
    ...Object.entries(counts).map(([le, count]): SampleOf => [{ le }, count, '_bucket']),
    [{}, sum, '_sum'],
    [{}, counts['+Inf']!, '_count'],
  ]);
}

/** Every sample by its name and labels as the page has them; a second one of a name throws. */
export function samplesOf(metrics: readonly MetricJson[]): Record<string, number> {
  const all = metrics.flatMap(({ name, values }) =>
    values.map(({ labels = {}, value, metricName = name }): [string, number] => {
      const inner = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
      return [`${metricName}{${inner.join()}}`, value];
    }),
  );
  const samples = Object.fromEntries(all);
  if (Object.keys(samples).length !== all.length) throw new Error('two samples of one name');
  return samples;
}
