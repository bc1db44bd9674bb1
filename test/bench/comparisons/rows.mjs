import { columnOf } from '../report/metrics.mjs';
import { median, sum } from '../statistics.mjs';

/** The system that a row is about, and why it was not run. */
export function identityOf(group, { contestant: { system }, label, notRun }) {
  const ours = system.ours ?? /^nestjs-cluster(?:-|$)/.test(system.name);
  return { group, system: system.name, label, ours, ...(notRun !== undefined && { notRun }) };
}

/** How a column that says so is made of its rounds, because a median of losses hides the worst round. */
const COMBINED = {
  sum,
  most: (values) => Math.max(...values),
};

/**
 * The medians of the rounds, or what a column has instead, and the sum of their errors.
 *
 * @param rounds metrics by name, `errors` by kind.
 */
export function mediansOf(rounds) {
  return {
    ...medians(rounds),
    ...(rounds.some((round) => round.errors) && { errors: added(rounds) }),
  };
}

/** Contestants that can be run here, and why the others cannot. */
export async function entriesOf(contestants, run, group) {
  const { node, nodeVersion, workers, progress, lacks } = run;
  const entries = [];
  for (const contestant of contestants) {
    const { system, label = system.label({ workers: contestant.workers ?? workers }) } = contestant;
    const notRun = lacks ?? (await system.missing?.({ node, nodeVersion }));
    if (notRun !== undefined) progress(`${group}, ${label}: not run: ${notRun}`);
    entries.push({ contestant, label, notRun });
  }
  return entries;
}

function medians(rounds) {
  const keys = [...new Set(rounds.flatMap((round) => Object.keys(round)))];
  return Object.fromEntries(
    keys
      .map((key) => [key, rounds.map((round) => round[key]).filter((value) => value !== undefined)])
      .filter(([, values]) => values.length > 0 && values.every((value) => isFigure(value)))
      .map(([key, values]) => [key, inOne(key, values)]),
  );
}

function inOne(key, values) {
  if (typeof values[0] === 'boolean') return values.every(Boolean);
  return (COMBINED[columnOf(key)?.combined] ?? median)(values);
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
