import { median } from '../statistics.mjs';
import { describeMeasurement } from './describe-measurement.mjs';

/** What everything else is compared with. */
const DEFAULT_SYSTEM = 'nestjs-cluster';

/**
 * Measures contestants against each other: every round brings each of them up anew, measures it and
 * ends it, one after the other and in turn from the first and from the last on, so that a drift of
 * the machine meets all of them.
 *
 * @param contestants what is measured: `system`, and where they differ from those of the run
 *   `label`, `workers`, `env` and whatever `measure` wants to know.
 * @param measure what is measured of a running contestant: metrics by name, `errors` by kind.
 * @returns a row for each contestant: medians of the rounds, errors of all of them.
 */
export async function compare({ contestants, rounds, group, measure, run }) {
  const { node, nodeVersion, adapter, workers, progress, nextPort, lacks } = run;
  const entries = [];
  for (const contestant of contestants) {
    const { system, label = system.label({ workers: contestant.workers ?? workers }) } = contestant;
    const notRun = lacks ?? (await system.missing({ node, nodeVersion }));
    if (notRun !== undefined) progress(`${group}, ${label}: not run: ${notRun}`);
    entries.push({ contestant, label, notRun, rounds: [] });
  }
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? entries : entries.toReversed();
    for (const entry of order) {
      if (entry.notRun !== undefined) continue;
      const { system, env = {}, ...own } = entry.contestant;
      const settings = { workers, offload: system.offload, ...own };
      try {
        const measured = await bringUp(
          system,
          { node, adapter, workers: settings.workers, port: await nextPort(), env },
          (running) => measure(running, settings),
        );
        entry.rounds.push(measured);
        progress(
          `${group}, round ${round + 1}/${rounds}, ${entry.label}: ${describeMeasurement(measured)}`,
        );
      } catch (error) {
        run.signal.throwIfAborted();
        // One that fails does not take the others' figures with it.
        [entry.notRun] = error.message.split('\n');
        progress(
          `${group}, round ${round + 1}/${rounds}, ${entry.label}: failed: ${error.message}`,
        );
      }
    }
  }
  return withRatios(entries.map((entry) => rowOf(group, entry)));
}

async function bringUp(system, options, measure) {
  const running = await system.start(options);
  try {
    return await measure(running);
  } finally {
    await running.stop();
  }
}

function rowOf(group, { contestant, label, notRun, rounds }) {
  const { system } = contestant;
  const identity = { group, system: system.name, label, ours: isOurs(system) };
  if (notRun !== undefined) return { ...identity, notRun };
  const errors = rounds.some((round) => round.errors) ? { errors: added(rounds) } : {};
  return { ...identity, ...medians(rounds), ...errors, rounds };
}

function isOurs({ name }) {
  return name === 'nestjs-cluster' || name.startsWith('nestjs-cluster-');
}

function medians(rounds) {
  const keys = [...new Set(rounds.flatMap((round) => Object.keys(round)))];
  return Object.fromEntries(
    keys
      .map((key) => [key, rounds.map((round) => round[key]).filter((value) => value !== undefined)])
      .filter(([, values]) => values.length > 0 && values.every((value) => isFigure(value)))
      .map(([key, values]) =>
        typeof values[0] === 'boolean' ? [key, values.every(Boolean)] : [key, median(values)],
      ),
  );
}

function isFigure(value) {
  return typeof value === 'boolean' || (typeof value === 'number' && !Number.isNaN(value));
}

function added(rounds) {
  const total = {};
  for (const { errors = {} } of rounds) {
    for (const [kind, count] of Object.entries(errors)) total[kind] = (total[kind] ?? 0) + count;
  }
  return total;
}

/** Each round against the default's of the same round: what drifts from round to round cancels out. */
function withRatios(rows) {
  const ours = rows.find(({ system, notRun }) => system === DEFAULT_SYSTEM && notRun === undefined);
  if (ours === undefined) return rows;
  return rows.map((row) => {
    if (row.notRun !== undefined || row.cpuMicros === undefined) return row;
    const ratios = row.rounds
      .map(({ cpuMicros }, i) => cpuMicros / ours.rounds[i].cpuMicros)
      .filter((ratio) => Number.isFinite(ratio));
    return ratios.length === 0 ? row : { ...row, cpuRatio: median(ratios) };
  });
}
