import { CustomChart, LineChart } from 'echarts/charts';
import { GridComponent, MarkLineComponent, TitleComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { chartOption } from './chart-option.mjs';
import { chartPanels } from './chart-panels.mjs';
import { THEMES } from './chart-themes.mjs';
import { describeChart } from './picture.mjs';
import { timelineOption } from './timeline-option.mjs';

use([CustomChart, GridComponent, LineChart, MarkLineComponent, SVGRenderer, TitleComponent]);

/** The chart of a scope as SVG, by theme: `{ light, dark }`; undefined where there is nothing to show. */
export function drawChart(result) {
  const label = describeChart(result);
  if (label === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(THEMES).map(([name, theme]) => [name, toSvg(optionOf(result, theme), label)]),
  );
}

function optionOf(result, theme) {
  return result.timeline === undefined
    ? chartOption(result, chartPanels(result), theme)
    : timelineOption(result, theme);
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
      .replaceAll(/\bzr\d+-c(?=\d)/g, 'clip-') // ids, which ECharts counts over all its charts too
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
