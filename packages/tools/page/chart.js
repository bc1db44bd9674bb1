// Charts of the last 15 minutes.
import { html, useEffect, useRef, useState } from 'htm/preact/standalone';
import uPlot from 'uplot';
import { bytes, count, minutes, ms, percent } from './format.js';

const SPAN_SECONDS = 900;
/** The span of the axis while there is little to show yet. */
const LEAST_SECONDS = 60;
const HEIGHT = 130;

/** Steps of an axis in bytes: whole numbers of MB. */
const BYTE_STEPS = Array.from({ length: 24 }, (_, i) => 2 ** (20 + i));

/** The keys are the classes of the lines in the style sheet. */
const COLORS = { strong: '--accent', middle: '--line-2', faint: '--line-3' };

const CHARTS = [
  { title: 'Requests a second', format: count, floor: 1, lines: [['requests', 'all', 'strong']] },
  {
    title: 'Latency',
    format: ms,
    floor: 1,
    needsMetrics: true,
    lines: [
      ['p99Ms', 'p99', 'strong'],
      ['p95Ms', 'p95', 'middle'],
      ['p50Ms', 'p50', 'faint'],
    ],
  },
  {
    title: 'Loop delay p99',
    format: ms,
    floor: 5,
    lines: [
      ['delayWorstMs', 'worst worker', 'strong'],
      ['delayPrimaryMs', 'primary', 'faint'],
    ],
  },
  {
    title: 'Utilisation',
    format: percent,
    floor: 1,
    lines: [
      ['utilizationWorst', 'worst', 'strong'],
      ['utilizationMean', 'mean', 'faint'],
    ],
  },
  {
    title: 'Memory',
    format: bytes,
    floor: 2 ** 20,
    lines: [
      ['residentBytes', 'resident', 'strong'],
      ['heapBytes', 'heap', 'faint'],
    ],
  },
  {
    title: 'Connections',
    format: count,
    floor: 2,
    lines: [
      ['connections', 'open', 'strong'],
      ['inFlight', 'requests in flight', 'faint'],
    ],
  },
  {
    title: 'Offloaded calls',
    format: count,
    floor: 2,
    needsMetrics: true,
    lines: [
      ['queued', 'waiting', 'strong'],
      ['offloaded', 'ended a second', 'faint'],
    ],
  },
];

export function Charts({ rows, problem, children }) {
  return html`
    <section>
      <h2>The last 15 minutes</h2>
      <div class="charts">
        ${CHARTS.map((chart) => {
          const empty = chart.lines.every(([name]) =>
            rows.every((row) => (row[name] ?? null) === null),
          );
          const missing = chart.needsMetrics && empty;
          return html`<${missing ? Missing : Chart}
            key=${chart.title}
            ...${{ chart, rows, problem }}
          />`;
        })}
        ${children}
      </div>
    </section>
  `;
}

/** Shows the reason instead of an empty chart. */
function Missing({ chart: { title, lines }, problem }) {
  const none = lines.some(([name]) => name === 'queued')
    ? 'the metrics have no calls to @CpuBound() methods'
    : 'no request in the last seconds';
  return html`
    <figure>
      <figcaption><h3>${title}</h3></figcaption>
      <p class="missing">Not known: ${problem ?? none}.</p>
    </figure>
  `;
}

function Chart({ chart: { title, format, floor, lines }, rows }) {
  const place = useRef(null);
  const plot = useRef(null);
  const [at, setAt] = useState(null);
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const data = ['at', ...lines.map(([name]) => name)].map((name) =>
    rows.map((row) => row[name] ?? null),
  );

  useEffect(() => {
    const element = place.current;
    const made = new uPlot(
      optionsOf({ width: element.clientWidth, format, floor, lines, setAt }),
      data,
      element,
    );
    plot.current = made;
    const resized = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: HEIGHT }),
    );
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [dark]);
  useEffect(() => plot.current?.setData(data));

  const row = rows[at] ?? rows.at(-1);
  const shown = lines.map(([name, label, kind]) => ({
    label,
    kind,
    value: format(row[name]),
  }));
  return html`
    <figure>
      <figcaption>
        <h3>${title}</h3>
        <span class="legend">
          ${shown.map(
            ({ label, kind, value }) =>
              html`<span key=${label} class=${kind}>${label} <b>${value}</b></span>`,
          )}
          ${at !== null && html`<time>${minutes(row.at)}</time>`}
        </span>
      </figcaption>
      <div
        ref=${place}
        class="plot"
        role="img"
        aria-label=${`${title}: ${shown.map(({ label, value }) => `${label} ${value}`).join(', ')}`}
      ></div>
    </figure>
  `;
}

function optionsOf({ width, format, floor, lines, setAt }) {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color('--muted'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: color('--grid'), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, sync: { key: 'all' }, y: false },
    scales: {
      x: {
        range: (_plot, min, max) => [
          Math.max(max - SPAN_SECONDS, Math.min(min, max - LEAST_SECONDS)),
          max,
        ],
      },
      y: { range: (_plot, _min, max) => [0, Math.max(floor, (max ?? 0) * 1.1)] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        space: 60,
        incrs: [60, 120, 180, 300],
        values: (_plot, splits) => splits.map(minutes),
      },
      {
        ...axis,
        size: 56,
        space: 36,
        values: (_plot, splits) => splits.map(format),
        ...(format === bytes && { incrs: BYTE_STEPS }),
      },
    ],
    series: [
      {},
      ...lines.map(([, label, kind]) => ({
        label,
        stroke: color(COLORS[kind]),
        width: 1.5,
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [({ cursor }) => setAt(cursor.idx ?? null)] },
  };
}
