import { chartPanels, chartSubtitle } from './chart-panels.mjs';
import { CHART_WIDTH } from './chart-option.mjs';

/**
 * The words that describe the chart of a scope; undefined if it has no chart.
 *
 * @param {import('./types.d.mts').Result} result
 */
export function describeChart(result) {
  const { title, timeline } = result;
  if (timeline !== undefined) return `${title}: ${timeline.title}`;
  const chart = chartPanels(result);
  return chart && `${title}: ${result.chart.title}, ${chartSubtitle(result, chart)}`;
}

/**
 * The chart of a scope as GitHub shows it in light and in dark; undefined where it has none.
 *
 * @param {import('./types.d.mts').Result} result
 * @param {string} folder of the charts, as seen from the text
 */
export function picture(result, folder) {
  const alt = describeChart(result)?.replaceAll('"', '&quot;');
  if (alt === undefined) return undefined;
  const { scope } = result;
  return [
    '<picture>',
    `  <source media="(prefers-color-scheme: dark)" srcset="${folder}${scope}-dark.svg" />`,
    `  <img alt="${alt}" src="${folder}${scope}-light.svg" width="${CHART_WIDTH}" />`,
    '</picture>',
  ].join('\n');
}
