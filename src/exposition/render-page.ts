import type { MetricFamily } from './metric-family.js';

/** `text` = Prometheus text format 0.0.4; `openmetrics` = OpenMetrics 1.0. */
export type PageFormat = 'text' | 'openmetrics';

export const CONTENT_TYPES: Readonly<Record<PageFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

const TOTAL = '_total';

/** Metrics as a page that Prometheus reads. */
export function renderPage(families: readonly MetricFamily[], format: PageFormat): string {
  const openMetrics = format === 'openmetrics';
  const blocks = families.map((family) => renderFamily(family, openMetrics));
  return openMetrics ? `${blocks.join('')}# EOF\n` : blocks.join('\n');
}

function renderFamily(family: MetricFamily, openMetrics: boolean): string {
  const { name, help, type, columns, series } = family;
  // In OpenMetrics the samples of a counter end in _total, and its family does not.
  const isCounter = openMetrics && type === 'counter';
  const familyName = isCounter && name.endsWith(TOTAL) ? name.slice(0, -TOTAL.length) : name;
  let block = `# HELP ${familyName} ${escapeHelp(help, openMetrics)}\n# TYPE ${familyName} ${type}\n`;
  const begins = columns.map(({ suffix, label }) => ({
    name: familyName + (isCounter ? TOTAL : suffix),
    label,
  }));
  for (const [labels, row] of series) {
    for (let i = 0; i < begins.length; i++) {
      const value = row[i];
      if (value === null || value === undefined) continue;
      const { name: sampleName, label } = begins[i]!;
      const inner = label && labels ? `${label},${labels}` : label || labels;
      block += `${sampleName}${inner && `{${inner}}`} ${formatValue(value)}\n`;
    }
  }
  return block;
}

function escapeHelp(help: string, openMetrics: boolean): string {
  const text = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return openMetrics ? text.replaceAll('"', '\\"') : text;
}

function formatValue(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
