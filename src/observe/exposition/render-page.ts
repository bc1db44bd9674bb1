import type { MetricFamily } from './metric-family.js';

/** The content type of the Prometheus text format, which every version of Prometheus can read. */
export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Renders metrics in the Prometheus text format. */
export function renderPage(families: readonly MetricFamily[]): string {
  return families.map(renderFamily).join('\n');
}

function renderFamily({ name, type, help, columns, series }: MetricFamily): string {
  let block = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`;
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

function formatValue(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
