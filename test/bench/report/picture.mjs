import { chartPanels, chartSubtitle } from './chart-panels.mjs';
import { CHART_WIDTH } from './chart-option.mjs';

/**
 * The chart of a scope as GitHub shows it in light and in dark; undefined where it has none.
 *
 * @param {import('./types.d.mts').Result} result
 * @param {string} folder of the charts, as seen from the text
 */
export function picture(result, folder) {
  const chart = chartPanels(result);
  if (chart === undefined) return undefined;
  const { scope, title } = result;
  const alt = `${title}: ${result.chart.title}, ${chartSubtitle(result, chart)}`.replaceAll(
    '"',
    '&quot;',
  );
  return [
    '<picture>',
    `  <source media="(prefers-color-scheme: dark)" srcset="${folder}${scope}-dark.svg" />`,
    `  <img alt="${alt}" src="${folder}${scope}-light.svg" width="${CHART_WIDTH}" />`,
    '</picture>',
  ].join('\n');
}
