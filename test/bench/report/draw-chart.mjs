import { CustomChart } from 'echarts/charts';
import { GridComponent, TitleComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { chartOption } from './chart-option.mjs';
import { chartPanels, chartSubtitle } from './chart-panels.mjs';
import { THEMES } from './chart-themes.mjs';

use([CustomChart, GridComponent, TitleComponent, SVGRenderer]);

/** The chart of a scope as SVG, by theme: `{ light, dark }`; undefined where there is nothing to show. */
export function drawChart(result) {
  const chart = chartPanels(result);
  if (chart === undefined) return undefined;
  const label = `${result.title}: ${result.chart.title}, ${chartSubtitle(result, chart)}`;
  return Object.fromEntries(
    Object.entries(THEMES).map(([name, theme]) => [
      name,
      toSvg(chartOption(result, chart, theme), label),
    ]),
  );
}

function toSvg({ option, width, height }, label) {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height });
  try {
    chart.setOption(option);
    // Classes are for the pointer, which a picture has not, and ECharts counts them over all its
    // charts: the same result would look different after another one.
    const svg = chart
      .renderToSVGString({ useViewBox: true })
      .replaceAll(/ class="zr[^"]*"/g, '')
      .replace(/<style\b[^]*?<\/style>\n?/, '')
      .replace('<svg ', `<svg role="img" aria-label="${escapeAttribute(label)}" `);
    if (/\bzr\d*-/.test(svg)) throw new Error('ECharts numbers something new in its SVG');
    return `${svg}\n`;
  } finally {
    chart.dispose();
  }
}

function escapeAttribute(text) {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
