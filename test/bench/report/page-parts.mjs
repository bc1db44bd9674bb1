import { aheadSummary } from './ahead.mjs';
import { columnOf, hasMetric } from './columns.mjs';
import { dayOf, machineOf } from './facts.mjs';
import { resultOf } from './figures.mjs';
import { NOTHING } from './format.mjs';
import { groupsOf } from './groups.mjs';
import { picture } from './picture.mjs';

/** The main figures: columns of the tables, as far as their scope was run. */
const FIGURES = [
  { scope: 'keep-alive', metric: 'cpuMicros', heading: 'Keep-alive, CPU µs' },
  { scope: 'new-connections', metric: 'cpuMicros', heading: 'New connections, CPU µs' },
  { scope: 'mixed', metric: 'lightP99Ms', heading: 'Light route under heavy load, p99 ms' },
  { scope: 'reloads', metric: 'lost', of: 'asked', heading: 'Lost in reloads' },
  { scope: 'kills', metric: 'lost', of: 'asked', heading: 'Lost in kills' },
  { scope: 'memory', metric: 'frontRssBytes', heading: 'Primary or proxy, MB' },
  { scope: 'memory', metric: 'workerRssBytes', heading: 'Worker, MB' },
];
const PAGE_FIGURES = [
  ...FIGURES,
  { scope: 'memory', metric: 'totalRssBytes', heading: 'In all, MB' },
  { scope: 'memory', metric: 'idleWorkerRssBytes', heading: 'Idle worker, MB' },
];
const CHARTS = ['keep-alive', 'new-connections', 'mixed', 'reloads'];
/** From docs/. */
const RESULTS = '../test/bench/results/';

/** Columns of the README: what a reader most likely has now. */
const PEERS = ['reuse-port', 'pm2', 'watt', 'nestjs-cluster', 'nestjs-cluster-cpu-bound'];
const NOTHING_YET = 'Nothing is measured yet: `npm run bench`.';

/**
 * The benchmark section of the README, in parts: each is a Markdown text or a table as data.
 *
 * @param {import('./types.d.mts').Result[]} results
 * @returns {(string | import('./types.d.mts').Table)[]}
 */
export function readmeParts(results) {
  if (results.length === 0) return [NOTHING_YET];
  const run = mainRunOf(results);
  return [
    `The sample app; nestjs-cluster has all its features on. CPU is the CPU time of all server processes for each request, MB are RSS under load. ${conditions(run)}`,
    turned(figureTables(run, PEERS)),
    'The heavy load is 16 clients that ask for fibonacci(35) without pause. Load and servers share the same cores. Figures are medians, and requests lost, of all sent, a sum. Another machine reversed CPU differences of up to 32 %. "Not run": no reload, or no worker to kill. [All scopes](docs/benchmarks.md).',
  ];
}

/** The tables in one, dense so that the README stays small: a row for each figure and group, a column for each system. */
function turned(tables) {
  const [{ rows: systems }] = tables;
  const labels = systems.map(({ cells: [{ text }] }) => text);
  const rows = tables.flatMap(({ caption, head, rows: own }) =>
    head.slice(1).map((heading, index) => ({
      ours: false,
      cells: [
        { text: `${heading} (${caption})` },
        ...labels.map(
          (label) =>
            own.find(({ cells }) => cells[0].text === label)?.cells[index + 1] ?? { text: NOTHING },
        ),
      ],
    })),
  );
  return { head: ['', ...labels], align: ['l', ...labels.map(() => 'r')], rows, dense: true };
}

/** Results of the machine and commit of the main figures. No table mixes two. */
function mainRunOf(results) {
  const main =
    FIGURES.map(({ scope }) => results.find((result) => result.scope === scope)).find(Boolean) ??
    results[0];
  return results.filter(
    (result) => result.commit === main.commit && machineOf(result) === machineOf(main),
  );
}

/**
 * The content of docs/benchmarks.md, in parts: each is a Markdown text or a table as data.
 *
 * @param {import('./types.d.mts').Result[]} results
 * @returns {(string | import('./types.d.mts').Table)[]}
 */
export function pageParts(results) {
  if (results.length === 0) return [NOTHING_YET];
  const run = mainRunOf(results);
  const others = results.filter((result) => !run.includes(result));
  return [
    `${conditions(run)} A row is a system; nestjs-cluster has all its features on. Figures are medians, and requests lost, of all sent, a sum; – is not measured. CPU is the CPU time of all server processes for each request; MB are RSS, after 5 s of load on 64 kept connections where nothing else is said; with new connections, a Fastify worker has more. Every scope, with more columns and what is noise: [report.md](${RESULTS}report.md). It has the 99th percentiles under full load too; they rank nobody, because a rerun changes their order. [A rerun](#a-rerun) on another machine reversed some differences in CPU of up to 32 %.`,
    ...figureTables(run, undefined, PAGE_FIGURES).flatMap((table) => [
      table.caption && `**${table.caption}**`,
      table,
    ]),
    others.length > 0 &&
      `Measured on another machine or commit, so in no table above: ${others.map(linkTo).join(', ')}.`,
    ...charts(results),
    '## To reproduce it',
    commands(results),
    '## Where another system is ahead',
    `The list has the figures of the tables above that differ by more than 3 % from nestjs-cluster with its defaults; in CPU, only those that have a value in the column Difference of the report. The percentages compare the medians. That column is smaller, because it has the least of four comparisons. In [the other scopes](${RESULTS}report.md#ahead), such as the measurements of four published articles, other systems are ahead too, and some by more:`,
    aheadSummary(run, PAGE_FIGURES),
  ].filter(Boolean);
}

/**
 * A table for each group, a row for each system, a column for each main figure.
 *
 * @param {import('./types.d.mts').Result[]} results
 * @param {readonly string[]} [systems] only these
 * @param {readonly { scope: string, metric: string, of?: string, heading: string }[]} [shownFigures]
 * @returns {import('./types.d.mts').Table[]}
 */
export function figureTables(results, systems, shownFigures = FIGURES) {
  const figures = shownFigures.flatMap(({ scope, ...figure }) => {
    const result = resultOf(results, scope);
    return result?.rows.some((row) => hasMetric(row, figure.metric)) ? [{ result, ...figure }] : [];
  });
  const scopes = [...new Set(figures.map(({ result }) => result))];
  const groups = groupsOf({ rows: scopes.flatMap(({ rows }) => rows) });
  return groups.map(({ name, rows }) => {
    const shown = figures.filter(({ metric, result }) =>
      result.rows.some((row) => row.group === name && hasMetric(row, metric)),
    );
    return {
      caption: name,
      head: ['', ...shown.map(({ heading }) => heading)],
      align: ['l', ...shown.map(() => 'r')],
      rows: systemsOf(rows, systems).map(({ system, label, ours }) => ({
        ours: ours === true,
        cells: [{ text: label }, ...shown.map((figure) => cellOf(figure, name, system))],
      })),
    };
  });
}

function cellOf({ result, metric, of }, group, system) {
  const row = result.rows.find((each) => each.group === group && each.system === system);
  if (row?.notRun !== undefined) return { text: 'not run' };
  const has = row !== undefined && hasMetric(row, metric);
  if (!has) return { text: NOTHING };
  const text = columnOf(metric).format(row[metric]);
  return {
    text:
      of !== undefined && hasMetric(row, of) ? `${text} of ${columnOf(of).format(row[of])}` : text,
  };
}

/** The first row of each system: its label and whose it is. */
function systemsOf(rows, systems) {
  return rows.filter(
    ({ system }, index) =>
      (systems?.includes(system) ?? true) &&
      rows.findIndex((row) => row.system === system) === index,
  );
}

function charts(results) {
  return CHARTS.flatMap((scope) => {
    const result = results.find((candidate) => candidate.scope === scope);
    const shown = result && picture(result, RESULTS);
    return shown ? [shown, `\`${result.command}\``] : [];
  });
}

function commands(results) {
  return {
    head: ['', 'command'],
    align: ['l', 'l'],
    rows: results
      .filter(({ command }) => command !== undefined)
      .map(({ scope, title, command }) => ({
        ours: false,
        cells: [{ text: linkTo({ scope, title }) }, { text: `\`${command}\`` }],
      })),
  };
}

function linkTo({ scope, title }) {
  return `[${title}](${RESULTS}report.md#${scope})`;
}

/** "Node 24.21.0; Xeon, 2 cores; 2026-11-20 to 2026-11-21." */
function conditions(results) {
  const days = results.map(dayOf).filter(Boolean).toSorted();
  return `${[
    `Node ${distinct(results.map(({ versions }) => versions?.node))}`,
    distinct(results.map(machineOf)),
    distinct(results.map(({ commit }) => commit && `commit ${commit}`)),
    days[0] === days.at(-1) ? days[0] : `${days[0]} to ${days.at(-1)}`,
  ]
    .filter(Boolean)
    .join('; ')}.`;
}

function distinct(values) {
  return [...new Set(values.filter(Boolean))].join(' and ');
}
