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
  if (format === 'text') {
    return families.map((family) => renderFamily(family, family, escapeHelp)).join('\n');
  }
  const names = new Set(families.map(({ name }) => name));
  const blocks = families.map((family) =>
    renderFamily(family, openMetricsMeta(family, names), escapeOpenMetricsHelp),
  );
  return `${blocks.join('')}# EOF\n`;
}

/**
 * In OpenMetrics the samples of a counter end in `_total`, and its family's name
 * does not. One that cannot be written so keeps its name, and is of no type: who
 * asks for another format must not find it under another name.
 */
function openMetricsMeta(
  { name, type }: MetricFamily,
  names: ReadonlySet<string>,
): { name: string; type: string } {
  if (type !== 'counter') return { name, type };
  const short = name.slice(0, -TOTAL.length);
  return name.endsWith(TOTAL) && !names.has(short)
    ? { name: short, type }
    : { name, type: 'unknown' };
}

function renderFamily(
  { name, help, columns, series }: MetricFamily,
  meta: { readonly name: string; readonly type: string },
  escape: (help: string) => string,
): string {
  let block = `# HELP ${meta.name} ${escape(help)}\n# TYPE ${meta.name} ${meta.type}\n`;
  const begins = columns.map(({ suffix, label }) => ({ name: name + suffix, label }));
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

function escapeHelp(help: string): string {
  return help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeOpenMetricsHelp(help: string): string {
  return escapeHelp(help).replaceAll('"', '\\"');
}

function formatValue(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
