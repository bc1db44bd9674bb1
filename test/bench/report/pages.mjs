import { REAL_RATIO } from '../comparisons/window-statistics.mjs';
import { MAX_SHARE } from '../machine-use.mjs';
import { hasMetric, measured, textOf } from './metrics.mjs';
import { defaultRow, groupsOf, markdownTable, tablesOf } from './tables.mjs';

/** The main figures, of which less is better: columns of the tables of docs/benchmarks.md. */
const FIGURES = [
  { scope: 'keep-alive', metric: 'cpuMicros', heading: 'Keep-alive, CPU µs' },
  { scope: 'new-connections', metric: 'cpuMicros', heading: 'New connections, CPU µs' },
  { scope: 'mixed', metric: 'lightP99Ms', heading: 'Light route under heavy load, p99 ms' },
  { scope: 'reloads', metric: 'lost', of: 'asked', heading: 'Lost in reloads' },
  { scope: 'memory', metric: 'frontRssBytes', heading: 'Primary or proxy, MB' },
  { scope: 'memory', metric: 'workerRssBytes', heading: 'Worker, MB' },
  { scope: 'memory', metric: 'totalRssBytes', heading: 'Total, MB' },
  { scope: 'memory', metric: 'idleWorkerRssBytes', heading: 'Idle worker, MB' },
  { scope: 'memory', metric: 'startMs', heading: 'Start, ms' },
  { scope: 'reloads', metric: 'reloadMs', heading: 'Reload, ms' },
  { scope: 'kills', metric: 'recoveryMs', heading: 'Recovery from a kill, ms' },
];
/** The table of the README: what is worse here stands first. */
const README_ROWS = [
  { scope: 'memory', metric: 'idleTotalRssBytes', heading: 'Total memory, idle, MB' },
  {
    scope: 'keep-alive',
    metric: 'cpuMicros',
    heading: 'Keep-alive connection, CPU µs per request',
  },
  { scope: 'new-connections', metric: 'cpuMicros', heading: 'New connection, CPU µs per request' },
  {
    scope: 'mixed',
    metric: 'lightP99Ms',
    beside: 'heavyPerSecond',
    heading: 'Light route under heavy load: p99 ms (heavy requests/s)',
  },
  { scope: 'reloads', metric: 'lost', per: 'events', heading: 'Lost requests per reload' },
];
/** Its columns. `mixed` compares the system with `@CpuBound()`. */
const README_SYSTEMS = {
  'nestjs-cluster': { system: 'nestjs-cluster', mixed: 'nestjs-cluster-cpu-bound' },
  'node:cluster': { system: 'node-cluster-round-robin' },
  pm2: { system: 'pm2' },
  Watt: { system: 'watt' },
  'plain processes': { system: 'reuse-port' },
};
/** Minimum difference that is reported. Even medians differ by less because of noise. */
const NOTICEABLE_RATIO = 0.03;
const REPORT = '../test/bench/results/report.md';

/** "31.8<!-- fig keep-alive Express nestjs-cluster cpuMicros -->": scope, group with "_" for each space, system, metric. */
const FIGURE = /[\d.,]*(<!-- fig (\S+) (\S+) (\S+) (\w+) -->)/g;

/** A page with each marked figure as it was measured last, in the unit of its metric. */
export function fillFigures(page, results) {
  return page.replace(FIGURE, (_, marker, scope, group, system, metric) => {
    const row = results
      .find((result) => result.scope === scope)
      ?.rows.find((each) => each.group.replaceAll(' ', '_') === group && each.system === system);
    if (row === undefined || !hasMetric(row, metric)) {
      throw new Error(`A page has the figure ${scope} ${group} ${system} ${metric}: no run has it`);
    }
    return `${textOf(row, metric)}${marker}`;
  });
}

/** The block of the README. */
export function readmeBlock(results) {
  const shown = shownOf(results, README_ROWS).map((figure) => [
    figure.heading,
    ...Object.values(README_SYSTEMS).map((column) => readmeCell(figure, column)),
  ]);
  return `The sample app on Express with 2 workers; nestjs-cluster has metrics, health and watchdog on. CPU is the CPU time of all server processes. ${conditions(results)}

<!-- prettier-ignore -->
${markdownTable(['', ...Object.keys(README_SYSTEMS)], shown)}

Heavy load: 16 clients request fibonacci(35) without pause; nestjs-cluster uses \`@CpuBound()\`. Plain processes have no reload. [All figures, their noise, and where others are ahead](docs/benchmarks.md).`;
}

function readmeCell({ scope, rows, parameters, metric, beside, per }, column) {
  const system = column[scope] ?? column.system;
  const row = rows.find((each) => each.group === 'Express' && each.system === system) ?? {};
  if (per !== undefined && hasMetric(row, metric)) {
    return measured(row[metric] / (row.rounds.length * parameters[per]));
  }
  return beside === undefined
    ? textOf(row, metric)
    : `${textOf(row, metric)} (${textOf(row, beside)})`;
}

/** The block of docs/benchmarks.md. */
export function pageBlock(results) {
  const tables = figureTables(results, FIGURES).map(
    ({ name, systems, headings }) =>
      `**${name}**\n\n<!-- prettier-ignore -->\n${markdownTable(
        ['', ...headings],
        systems.map(({ label, cells }) => [label, ...cells]),
      )}`,
  );
  return `${conditions(results)} Figures are medians; lost requests are sums, with the number sent. CPU is the CPU time of all server processes per request. MB is resident memory, after 5 s of load on 64 keep-alive connections. – means not measured, or no such function. [The report](${REPORT}) has every scope, its command and its noise.

${tables.join('\n\n')}

## Where another system is ahead

These figures are more than 3 % lower than nestjs-cluster's with its defaults. For CPU, the difference also exceeds the noise. Others also lead elsewhere in [the report](${REPORT}), such as in the articles' tests:

${ahead(results)}`;
}

/** The report: every scope with all of its figures. */
export function report(results) {
  const scopes = results.map((result) => {
    const { scope, title, about, command } = result;
    return `<a id="${scope}"></a>

## ${title}

${about}

- \`${command}\`
- Parameters: ${wordsOf(result.parameters)}
- ${machineOf(result)}; ${wordsOf(result.versions)}
- ${dayOf(result)}, commit ${result.commit}

${tablesOf(result).join('\n\n')}`;
  });
  return `# Measurements

\`npm run bench:report\` writes this page from the JSON files beside it: do not edit. Numbers are medians of interleaved rounds, with the least and the most of the rounds in parentheses. Requests sent and lost are sums of all rounds; compare them within a table, not between machines. \`× nestjs-cluster\` is the median of the ratios of each round to nestjs-cluster as it is by default, so it may differ from the ratio of two medians.

All systems were up at once in tables that show the least CPU per request beside the median. Windows of load went round among them, in turn forwards and backwards, over several starts. Each window is compared with the window of the baseline next to it: a ratio is the median of these comparisons, with their lower quartile and their least beside it; \`least × least\` is the ratio of the two minima. A difference is told if the minima, the lower quartiles, the medians and that ratio agree by more than ${REAL_RATIO * 100} %, and each start points the same way. The column shows the smallest of the four. Everything else is "no difference". A window in which others used more than ${MAX_SHARE * 100} % of the machine was discarded.

${results.map(({ scope, title }) => `- [${title}](#${scope})`).join('\n')}

${scopes.join('\n\n')}
`;
}

/** The figures with the rows of their scope, as far as it was run where and with what the first was: no table mixes two. */
function shownOf(results, figures) {
  const main = results.find(({ scope }) => scope === figures[0].scope);
  return figures.flatMap((figure) => {
    const result = results.find(({ scope }) => scope === figure.scope);
    if (
      result === undefined ||
      result.commit !== main.commit ||
      machineOf(result) !== machineOf(main)
    )
      return [];
    return [{ ...figure, rows: result.rows, parameters: result.parameters }];
  });
}

/** A table for each group: a row for each system, a column for each figure that the group has. */
export function figureTables(results, figures) {
  const shown = shownOf(results, figures);
  return groupsOf([...new Set(shown.flatMap(({ rows }) => rows))]).map(({ name, rows }) => {
    const own = shown.filter(({ rows: all, metric }) =>
      all.some((row) => row.group === name && hasMetric(row, metric)),
    );
    const systems = rows.filter(
      ({ system }, k) => rows.findIndex((row) => row.system === system) === k,
    );
    return {
      name,
      headings: own.map(({ heading }) => heading),
      systems: systems.map(({ system, label }) => ({
        label,
        cells: own.map(({ rows: all, metric, of }) => {
          const row = all.find((each) => each.group === name && each.system === system);
          if (row?.notRun !== undefined) return '–';
          const text = textOf(row ?? {}, metric);
          return of && hasMetric(row ?? {}, of) ? `${text} of ${textOf(row, of)}` : text;
        }),
      })),
    };
  });
}

/** A line for each system that is ahead of nestjs-cluster's default in one of the main figures. */
export function ahead(results) {
  const lines = new Map(); // by system, then by figure: percents
  for (const { rows, metric, heading } of shownOf(results, FIGURES)) {
    for (const { rows: own } of groupsOf(rows)) {
      const ours = defaultRow(own);
      for (const row of own.filter((each) => !each.ours && ours && isAhead(each, ours, metric))) {
        const line = lines.get(row.label) ?? new Map();
        const percent = Math.round((1 - row[metric] / ours[metric]) * 100);
        lines.set(row.label, line.set(heading, [...(line.get(heading) ?? []), percent]));
      }
    }
  }
  const range = (percents) => [...new Set([Math.min(...percents), Math.max(...percents)])];
  return [...lines]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([label, line]) => {
      const figures = [...line].map(([heading, all]) => {
        const name = heading
          .replace(/^./, (letter) => letter.toLowerCase())
          .replace(/, CPU µs$/, ' CPU')
          .replace(/, MB$/, ' memory')
          .replace(/, (?:p99 )?ms$/, '');
        return `${name} ${range(all).join(' to ')} %`;
      });
      return `- **${label}**: ${figures.join(', ')}.`;
    })
    .join('\n');
}

function isAhead(row, ours, metric) {
  if (!hasMetric(row, metric) || !hasMetric(ours, metric)) return false;
  // In a comparison by windows, medians alone are not enough: `difference` decides.
  if (metric === 'cpuMicros' && row.difference !== undefined) return row.difference < 0;
  return row[metric] < ours[metric] * (1 - NOTICEABLE_RATIO);
}

/** "Node 24.21.0; Xeon, 2 cores; commit 3dd550ee; 2026-11-20." */
function conditions(results) {
  const main = results.find(({ scope }) => scope === FIGURES[0].scope);
  return `Node ${main.versions.node}; ${machineOf(main)}; commit ${main.commit}; ${dayOf(main)}.`;
}

function machineOf({ machine: { cpu, cores, memoryBytes, kernel } }) {
  return `${cpu}, ${cores} core${cores === 1 ? '' : 's'}, ${(memoryBytes / 1e9).toFixed(1)} GB, kernel ${kernel}`;
}

function dayOf({ date }) {
  return date.slice(0, 10);
}

/** "seconds 5, rounds 3" */
function wordsOf(values) {
  return Object.entries(values)
    .map(
      ([key, value]) =>
        `${key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${value}`,
    )
    .join(', ');
}
