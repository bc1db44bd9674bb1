import { markdownTable } from '../bench/report/tables.mjs';

const OUTCOMES = ['success', 'ended', 'reset', 'closed', 'refused', 'timeout', 'unexpected'];
/** Maximum number of losses, and of other problems, that are printed. The JSON file has all. */
const SHOWN = 15;

/** A verdict in words. */
export function describe(verdict) {
  const { seed, ok, unallowed, problems } = verdict;
  return [
    `chaos, seed ${seed}`,
    '',
    // Recovery is what follows once the harm is over: the worker dead, the limit lifted.
    table(
      ['fault', 'count', 'took, median', 'max', 'recovery, median', 'max'],
      verdict.faults.map(({ name, count, took, recovery }) => [
        name,
        count,
        ...[took, recovery].flatMap((each) => [ms(each?.medianMs), ms(each?.maxMs)]),
      ]),
    ),
    '',
    table(
      ['client', ...OUTCOMES],
      Object.entries(verdict.clients).map(([name, counts]) => [
        name,
        ...OUTCOMES.map((outcome) => counts[outcome] ?? 0),
      ]),
    ),
    '',
    `allowed losses, by cause: ${pairs(verdict.allowed) || 'none'}`,
    `scrapes: ${pairs(verdict.scrapes)}`,
    ...verdict.flat.map(
      ({ name, early, late, allowed }) =>
        `${name}: ${early} -> ${late} (up to ${Math.round(allowed)})`,
    ),
    '',
    ...(unallowed.length > 0 ? [`${unallowed.length} losses that nothing allows:`] : []),
    ...unallowed.slice(0, SHOWN).map((loss, index) => describeLoss(loss, unallowed[index - 1])),
    ...(problems.length > 0 ? [`${problems.length} other problems:`] : []),
    ...problems
      .slice(0, SHOWN)
      .map(({ at, what, after }) => `  ${at ? `${time(at)} after ${after}: ` : ''}${what}`),
    ...(ok ? [] : ['the last lines of the cluster:', ...verdict.lastLines.map(line)]),
    ok ? `held (seed ${seed})` : `did not hold (seed ${seed})`,
  ].join('\n');
}

function describeLoss({ at, since, client, outcome, what, pid, answered, after, lines }, before) {
  const owner = pid ?? (answered ? 'not told' : 'unknown');
  const known = new Set(before?.lines.map(({ text }) => text));
  return [
    `  ${time(at)} after ${after}: ${client}: ${outcome}, ${what}; worker ${owner}, since ${at - since} ms`,
    ...lines
      .filter(({ text }) => !known.has(text))
      .slice(-8)
      .map(line),
  ].join('\n');
}

function line({ at, text }) {
  return `      ${time(at)} ${text.slice(0, 160)}`;
}

function table(head, rows) {
  return markdownTable(
    head,
    rows.map((row) => row.map(String)),
    { wide: true },
  );
}

function pairs(counts) {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}

function time(at) {
  return new Date(at).toISOString().slice(11, 23);
}

function ms(value) {
  return value === undefined ? '-' : `${value} ms`;
}
