import { chartSubtitle } from './chart-panels.mjs';

export const CHART_WIDTH = 830; // the width of a README on GitHub
/** GitHub's fonts. No quotes: ECharts writes this into an attribute without escaping it. */
export const FONT =
  '-apple-system, BlinkMacSystemFont, Segoe UI, Noto Sans, Helvetica, Arial, sans-serif';
/** The room that {@link titles} take. */
export const TITLE_HEIGHT = 54;
const PANEL_HEAD_HEIGHT = 26;
const PANEL_GAP = 12;
const ROW_HEIGHT = 23;
const SCALE_HEIGHT = 20;
const VALUE_WIDTH = 96;
const CHARACTER_WIDTH = 7;
const MAX_LABEL_WIDTH = 320;
const LABEL_MARGIN = 8;

/**
 * A chart as an option of ECharts, with the height it needs.
 *
 * @param {import('./types.d.mts').Result} result
 * @param {import('./types.d.mts').Panels} chart
 * @param {typeof import('./chart-themes.mjs').THEMES.light} theme
 * @returns {{ option: Record<string, any>, width: number, height: number }}
 */
export function chartOption(result, chart, theme) {
  const { panels, range, log } = chart;
  const left = labelWidth(panels);
  const option = {
    animation: false,
    textStyle: { fontFamily: FONT },
    title: titles(`${result.title}: ${result.chart.title}`, chartSubtitle(result, chart), theme),
    grid: [],
    xAxis: [],
    yAxis: [],
    series: [],
  };
  let top = TITLE_HEIGHT;
  panels.forEach(({ name, bars }, index) => {
    const height = bars.length * ROW_HEIGHT;
    if (name) {
      option.title.push(heading(name, { left: 0, top, size: 14, color: theme.text }));
      top += PANEL_HEAD_HEIGHT;
    }
    option.grid.push({ left, right: VALUE_WIDTH, top, height });
    option.xAxis.push(valueAxis({ index, log, range, theme }));
    option.yAxis.push(labelAxis({ index, bars, width: left - LABEL_MARGIN, theme }));
    option.series.push(barSeries({ index, bars, range, theme }));
    top += height + (log ? SCALE_HEIGHT : 0) + PANEL_GAP;
  });
  return { option, width: CHART_WIDTH, height: top };
}

/** The title of a chart and the line below it. */
export function titles(title, subtitle, { text, mutedText }) {
  return [
    heading(title, { left: 0, top: 0, size: 16, color: text }),
    heading(subtitle, { left: 0, top: 25, size: 12, color: mutedText, weight: 'normal' }),
  ];
}

/** A line of text above a chart or a panel. */
export function heading(text, { left, top, size, color, weight = 'bold' }) {
  return { text, left, top, padding: 0, textStyle: { fontSize: size, fontWeight: weight, color } };
}

function labelWidth(panels) {
  const longest = Math.max(...panels.flatMap(({ bars }) => bars.map(({ label }) => label.length)));
  return Math.min(MAX_LABEL_WIDTH, longest * CHARACTER_WIDTH + 12);
}

function valueAxis({ index, log, range, theme }) {
  const decades = log ? decadesWithin(range) : undefined; // ECharts adds the end of the axis
  return {
    gridIndex: index,
    silent: true,
    type: log ? 'log' : 'value',
    ...range,
    axisLine: { show: false },
    axisTick: { show: false, customValues: decades },
    splitLine: { show: log, lineStyle: { color: theme.grid } },
    // A bar on a linear scale says its value itself; a logarithmic scale needs its decades.
    axisLabel: { show: log, customValues: decades, fontSize: 11, color: theme.mutedText },
  };
}

function decadesWithin({ min, max }) {
  const first = Math.round(Math.log10(min));
  const count = Math.floor(Math.log10(max)) - first + 1;
  return Array.from({ length: count }, (_, index) => Number(`1e${first + index}`));
}

function labelAxis({ index, bars, width, theme }) {
  return {
    gridIndex: index,
    silent: true,
    type: 'category',
    inverse: true,
    axisLine: { lineStyle: { color: theme.grid }, onZero: false },
    axisTick: { show: false },
    axisLabel: { interval: 0, fontSize: 12, margin: LABEL_MARGIN, width, overflow: 'truncate' },
    data: bars.map(({ label, ours }) => ({
      value: label,
      textStyle: { color: theme.text, fontWeight: ours ? 'bold' : 'normal' },
    })),
  };
}

function barSeries({ index, bars, range, theme }) {
  return {
    type: 'custom',
    xAxisIndex: index,
    yAxisIndex: index,
    silent: true,
    animation: false,
    encode: { x: 0, y: 1 },
    data: bars.map(({ value }, row) => [value, row]),
    renderItem: (_, api) => {
      const row = api.value(1);
      const x = (value) => api.coord([Math.max(value, range.min), row]);
      return { type: 'group', children: barShapes(bars[row], { x, from: x(range.min), theme }) };
    },
  };
}

/** A bar, the line of its spread and its value behind both. */
function barShapes({ value, least, most = value, text, ours }, { x, from, theme }) {
  const [left, middle] = from;
  const height = 14;
  const shapes = [
    {
      type: 'rect',
      shape: {
        x: left,
        y: middle - height / 2,
        width: x(value)[0] - left,
        height,
        r: [0, 2, 2, 0],
      },
      style: { fill: ours ? theme.accent : theme.neutral },
    },
  ];
  if (least !== undefined && x(most)[0] - x(least)[0] >= 1) {
    shapes.push({
      type: 'line',
      shape: { x1: x(least)[0], x2: x(most)[0], y1: middle, y2: middle },
      style: { stroke: theme.spread, lineWidth: 1.5 },
    });
  }
  shapes.push({
    type: 'text',
    style: {
      x: Math.max(x(value)[0], x(most)[0]) + 6,
      y: middle,
      text,
      fontSize: 12,
      fontFamily: FONT,
      fontWeight: ours ? 'bold' : 'normal',
      fill: theme.text,
      // Keeps the text readable if a line of the scale crosses it.
      stroke: theme.background,
      lineWidth: 3,
      textVerticalAlign: 'middle',
    },
  });
  return shapes;
}
