import { describe, expect, it } from 'vitest';
import { chartOption } from '../bench/report/chart-option.mjs';
import { chartPanels, chartSubtitle } from '../bench/report/chart-panels.mjs';
import { THEMES } from '../bench/report/chart-themes.mjs';
import { picture } from '../bench/report/picture.mjs';
import { timelineOption } from '../bench/report/timeline-option.mjs';
import { benchChart, benchResult, benchRow } from '../unit/support/bench-results.js';

interface Label {
  value: string;
  textStyle: { fontWeight: string };
}

const rounds = [{ cpuMicros: 20 }, { cpuMicros: 22 }, { cpuMicros: 25 }];
const result = benchResult({
  rows: [
    benchRow('Express', 'pm2', { cpuMicros: 36 }),
    benchRow('Express', 'nestjs-cluster', { cpuMicros: 22, rounds }),
    benchRow('Express', 'nginx', { notRun: 'nginx is missing' }),
    benchRow('Express', 'watt', { p99Ms: 3 }),
    benchRow('Fastify', 'nestjs-cluster', { cpuMicros: 15 }),
  ],
});

describe('the chart of a scope', () => {
  it('has a panel for each group and a bar for each row that was run, best first', () => {
    const bars = chartPanels(result)?.panels.map(({ name, bars }) => [
      name,
      ...bars.map(({ label, text }) => `${label} ${text}`),
    ]);
    expect(bars).toEqual([
      ['Express', 'nestjs-cluster 22.0 µs', 'pm2 36.0 µs'],
      ['Fastify', 'nestjs-cluster 15.0 µs'],
    ]);
  });

  it('puts the largest first where higher is better', () => {
    const chart = benchChart('requestsPerSecond', { unit: 'req/s', better: 'higher' });
    const rows = [
      benchRow('Express', 'pm2', { requestsPerSecond: 6_326 }),
      benchRow('Express', 'nestjs-cluster', { requestsPerSecond: 18_606 }),
    ];
    expect(
      chartPanels(benchResult({ chart, rows }))?.panels[0]?.bars.map(({ text }) => text),
    ).toEqual(['18,606/s', '6,326/s']);
  });

  it('has one scale for all panels, as far as the largest round', () => {
    expect(chartPanels(result)?.range).toEqual({ min: 0, max: 36 });
    const wide = [{ cpuMicros: 30 }, { cpuMicros: 60 }];
    const spread = benchResult({ rows: [benchRow('', 'pm2', { cpuMicros: 40, rounds: wide })] });
    expect(chartPanels(spread)?.range.max).toBe(60);
  });

  it('begins a logarithmic scale at a decade below every bar, and leaves zero without one', () => {
    const chart = benchChart('lightP99Ms', { unit: 'ms', log: true });
    const rows = [0, 1, 2_800].map((lightP99Ms) => benchRow('', 'pm2', { lightP99Ms }));
    expect(chartPanels(benchResult({ chart, rows }))?.range).toEqual({ min: 0.1, max: 2_800 });
    const nothing = chartPanels(benchResult({ chart, rows: rows.slice(0, 1) }));
    expect(nothing).toMatchObject({ range: { min: 0, max: 1 }, log: false });
  });

  it('has a scale where everything is zero', () => {
    const rows = [benchRow('Express', 'nestjs-cluster', { lost: 0 })];
    const chart = benchChart('lost', { unit: 'requests' });
    const { range, panels } = chartPanels(benchResult({ chart, rows }))!;
    expect(range).toEqual({ min: 0, max: 1 });
    expect(panels[0]?.bars[0]?.text).toBe('0');
  });

  it('says that losses are a sum, which has no spread', () => {
    const rows = [benchRow('', 'pm2', { lost: 9, rounds: [{ lost: 4 }, { lost: 5 }] })];
    const losses = benchResult({ chart: benchChart('lost', { unit: '' }), rows });
    expect(chartPanels(losses)!.panels[0]!.bars[0]).not.toHaveProperty('least');
    expect(chartSubtitle(losses, chartPanels(losses)!)).toBe('lower is better; sum of 3 rounds');
  });

  it('is none where no row has its metric', () => {
    expect(
      chartPanels(benchResult({ rows: [benchRow('', 'pm2', { notRun: 'x' })] })),
    ).toBeUndefined();
    expect(chartPanels(benchResult({ chart: undefined, rows: result.rows }))).toBeUndefined();
  });

  it('says which way is better, and what the scale and the lines are', () => {
    expect(chartSubtitle(result, chartPanels(result)!)).toBe(
      'µs, lower is better; median of 3 rounds, the thin line is from the least to the most',
    );
    const windows = [20, 24, 28, 22, 90].map((cpuMicros) => ({
      cpuMicros,
      counts: cpuMicros < 90,
    }));
    const windowed = benchResult({
      parameters: { starts: 3, windows: 6 },
      rows: [benchRow('', 'pm2', { cpuMicros: 23, windows })],
    });
    const { panels } = chartPanels(windowed)!;
    expect(panels[0]?.bars[0]).toMatchObject({ least: 20, most: 25 });
    expect(chartSubtitle(windowed, chartPanels(windowed)!)).toBe(
      'µs, lower is better; median of 18 windows, the thin line is from the least to the upper quartile',
    );
    const chart = benchChart('requestsPerSecond', { better: 'higher', log: true });
    const rows = [benchRow('', 'pm2', { requestsPerSecond: 1 })];
    const rates = benchResult({ chart, rows });
    expect(chartSubtitle(rates, chartPanels(rates)!)).toBe('higher is better; logarithmic scale');
  });

  it('is as high as its rows need, with the labels of nestjs-cluster in bold', () => {
    const { option, height } = chartOption(result, chartPanels(result)!, THEMES.light);
    const last = option.grid.at(-1);
    expect(height).toBeGreaterThanOrEqual(last.top + last.height);
    expect(height).toBeLessThan(last.top + last.height + 30);
    expect(
      option.yAxis[0].data.map(({ value, textStyle }: Label) => [value, textStyle.fontWeight]),
    ).toEqual([
      ['nestjs-cluster', 'bold'],
      ['pm2', 'normal'],
    ]);
    expect(option.title.map(({ text }: { text: string }) => text)).toContain('Fastify');
  });

  it('has the decades of a logarithmic scale and no other line', () => {
    const chart = benchChart('lightP99Ms', { log: true });
    const rows = [0.3, 10_429].map((lightP99Ms) => benchRow('', 'pm2', { lightP99Ms }));
    const logarithmic = benchResult({ chart, rows });
    const { option } = chartOption(logarithmic, chartPanels(logarithmic)!, THEMES.light);
    expect(option.xAxis[0]).toMatchObject({
      type: 'log',
      min: 0.1,
      max: 10_429,
      axisTick: { customValues: [0.1, 1, 10, 100, 1_000, 10_000] },
    });
    expect(option.title).toHaveLength(2); // no group, no heading of a panel
  });

  it('draws a bar, the line of its rounds and its value, of its colour, from the axis', () => {
    const { option } = chartOption(result, chartPanels(result)!, THEMES.dark);
    const shapes = (row: number) =>
      option.series[0].renderItem(undefined, {
        value: () => row,
        coord: ([value, index]: number[]) => [200 + value! * 10, index! * 20],
      }).children;
    const [bar, line, text] = shapes(0);
    expect(bar.shape).toMatchObject({ x: 200, width: 220 });
    expect(bar.style.fill).toBe(THEMES.dark.accent);
    expect(line.shape).toMatchObject({ x1: 400, x2: 450 });
    expect(text.style).toMatchObject({ text: '22.0 µs', x: 456 });
    expect(shapes(1)).toHaveLength(2); // no rounds, no line
    expect(shapes(1)[0].style.fill).toBe(THEMES.dark.neutral);
  });

  it('is shown in light and in dark', () => {
    const shown = picture(result, 'test/bench/results/');
    expect(shown).toContain(
      '(prefers-color-scheme: dark)" srcset="test/bench/results/keep-alive-dark.svg"',
    );
    expect(shown).toContain('src="test/bench/results/keep-alive-light.svg"');
    expect(shown).toContain('alt="Keep-alive: CPU per request, µs, lower is better');
    expect(picture(benchResult({ rows: [] }), '')).toBeUndefined();
  });
});

describe('the chart of a soak', () => {
  const sample = (minute: number, residentBytes: number, p99Ms: number | null = 2) => ({
    minute,
    primary: { descriptors: 40, residentBytes, heapBytes: 20e6 },
    workers: [{ residentBytes: 100e6 }, { residentBytes: 140e6 }],
    p50Ms: 1,
    p99Ms,
    maxMs: 9,
  });
  const soak = benchResult({
    scope: 'soak',
    title: 'A soak',
    chart: undefined,
    timeline: {
      title: '3 minutes in 2 parts',
      parts: [
        { samples: [sample(1, 60e6), sample(2, 61e6, null)] },
        { samples: [sample(1, 62e6)] },
      ],
    },
  });
  const { option, height } = timelineOption(soak, THEMES.light);

  it('puts the parts behind one another, with a gap and a mark between them', () => {
    const [primary, workers] = option.series;
    expect(primary.data).toEqual([
      [1 / 60, 60],
      [2 / 60, 61],
      [2 / 60, undefined],
      [3 / 60, 62],
    ]);
    expect(workers.data[0]).toEqual([1 / 60, 120]);
    expect(primary.markLine.data).toEqual([{ xAxis: 2 / 60 }]);
  });

  it('leaves out what was not recorded, and has room for all panels', () => {
    const latency = option.series.at(-2);
    expect(latency.data.map(([, value]: [number, unknown]) => value)).toEqual([
      2,
      null,
      undefined,
      2,
    ]);
    expect(height).toBeGreaterThan(option.grid.at(-1).top + option.grid.at(-1).height);
    expect(picture(soak, '')).toContain('alt="A soak: 3 minutes in 2 parts" src="soak-light.svg"');
  });
});

describe.each(Object.entries(THEMES))('the colours of the %s theme', (_, theme) => {
  it.each(['text', 'mutedText'] as const)('have a contrast of 4.5 for %s', (key) => {
    expect(contrast(theme[key], theme.background)).toBeGreaterThanOrEqual(4.5);
  });

  it.each(['accent', 'neutral'] as const)('have a contrast of 3 for a bar in %s', (key) => {
    expect(contrast(theme[key], theme.background)).toBeGreaterThanOrEqual(3);
  });

  it('have a contrast of 3 for the line of the rounds on and beside a bar', () => {
    for (const behind of [theme.accent, theme.neutral, theme.background]) {
      expect(contrast(theme.spread, behind)).toBeGreaterThanOrEqual(3);
    }
  });
});

/** Contrast ratio of WCAG 2.2. */
function contrast(one: string, other: string): number {
  const [darker, lighter] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (lighter! + 0.05) / (darker! + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}
