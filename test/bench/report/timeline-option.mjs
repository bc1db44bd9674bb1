import { CHART_WIDTH, FONT, heading, TITLE_HEIGHT, titles } from './chart-option.mjs';

const PANEL_HEAD_HEIGHT = 24;
const PANEL_HEIGHT = 110;
const PANEL_GAP = 34;
const MINUTES = 60;

/** The panels of the chart, from top to bottom. A line reads its value from a sample. */
const PANELS = [
  {
    title: 'Resident memory, MB: primary (blue), and mean of the workers (grey)',
    lines: [
      ({ primary }) => megabytes(primary.residentBytes),
      (sample) => megabytes(meanOf(sample, 'residentBytes')),
    ],
  },
  {
    title: 'JavaScript heap, MB: primary after a collection (blue), and mean of the workers (grey)',
    lines: [
      ({ primary }) => megabytes(primary.heapBytes),
      (sample) => megabytes(meanOf(sample, 'heapBytes')),
    ],
  },
  {
    title: 'Open descriptors: primary (blue), and mean of the workers (grey)',
    lines: [({ primary }) => primary.descriptors, (sample) => meanOf(sample, 'descriptors')],
  },
  {
    title:
      'Latency of a kept connection, ms: 99th percentile (blue) and median (grey) of each minute',
    lines: [({ p99Ms }) => p99Ms, ({ p50Ms }) => p50Ms],
    log: true,
  },
];

/**
 * The course of a soak as an option of ECharts, with the height it needs. The first line of a panel
 * has the accent. A vertical line is where a new part begins, with a new cluster.
 *
 * @param {import('./types.d.mts').Result} result
 * @param {typeof import('./chart-themes.mjs').THEMES.light} theme
 * @returns {{ option: Record<string, any>, width: number, height: number }}
 */
export function timelineOption({ title, timeline }, theme) {
  const option = {
    animation: false,
    textStyle: { fontFamily: FONT },
    title: titles(title, timeline.title, theme),
    grid: [],
    xAxis: [],
    yAxis: [],
    series: [],
  };
  const { samples, begins, hours } = inHours(timeline.parts);
  let top = TITLE_HEIGHT;
  PANELS.forEach((panel, index) => {
    option.title.push(heading(panel.title, { left: 0, top, size: 12, color: theme.text }));
    top += PANEL_HEAD_HEIGHT;
    option.grid.push({ left: 52, right: 16, top, height: PANEL_HEIGHT });
    option.xAxis.push(timeAxis({ index, hours, theme }));
    option.yAxis.push(valueAxis({ index, log: panel.log, theme }));
    panel.lines.forEach((read, line) =>
      option.series.push(lineOf({ samples, read, index, line, begins, theme })),
    );
    top += PANEL_HEIGHT + PANEL_GAP;
  });
  return { option, width: CHART_WIDTH, height: top };
}

/** The samples with the hour of each since the beginning of the first part, and a gap between parts. */
function inHours(parts) {
  const samples = [];
  const begins = [];
  let before = 0;
  for (const part of parts) {
    if (samples.length > 0) {
      begins.push(before / MINUTES);
      samples.push({ hour: before / MINUTES });
    }
    for (const sample of part.samples) {
      samples.push({ hour: (before + sample.minute) / MINUTES, sample });
    }
    before += part.samples.length;
  }
  return { samples, begins, hours: before / MINUTES };
}

function lineOf({ samples, read, index, line, begins, theme }) {
  return {
    type: 'line',
    xAxisIndex: index,
    yAxisIndex: index,
    silent: true,
    showSymbol: false,
    lineStyle: { width: 1.5, color: line === 0 ? theme.accent : theme.neutral },
    data: samples.map(({ hour, sample }) => [hour, sample && read(sample)]),
    markLine: line === 0 && {
      silent: true,
      symbol: 'none',
      label: { show: false },
      lineStyle: { color: theme.spread, type: 'dashed', width: 1 },
      data: begins.map((hour) => ({ xAxis: hour })),
    },
  };
}

function timeAxis({ index, hours, theme }) {
  return {
    gridIndex: index,
    silent: true,
    type: 'value',
    min: 0,
    max: hours,
    axisLine: { lineStyle: { color: theme.grid } },
    splitLine: { show: false },
    axisLabel: {
      fontSize: 11,
      color: theme.mutedText,
      formatter: (hour) => `${Number(hour.toFixed(2))} h`,
    },
  };
}

function valueAxis({ index, log = false, theme }) {
  return {
    gridIndex: index,
    silent: true,
    type: log ? 'log' : 'value',
    ...(!log && { min: 0 }),
    splitNumber: 3,
    splitLine: { lineStyle: { color: theme.grid } },
    axisLabel: { fontSize: 11, color: theme.mutedText },
  };
}

function megabytes(bytes) {
  return bytes === undefined ? undefined : bytes / 1e6;
}

function meanOf({ workers }, key) {
  const values = workers.map((worker) => worker[key]).filter(Number.isFinite);
  return values.length === 0
    ? undefined
    : values.reduce((total, value) => total + value, 0) / values.length;
}
