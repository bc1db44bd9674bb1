import { median } from '../bench/statistics.mjs';
import { flatness } from './flatness.mjs';
import { allowance, refusal } from './verdict.mjs';

const AROUND_MS = 1_500;
/** A scrape that missed may have begun before what it waited for, and ended after it. */
const SCRAPE_MS = 4_000;

/** The result of each check of a run, as plain data. report.mjs makes a text of it. */
export function judge(settings, seen) {
  const { context, cluster, clients, scraper, log, faults } = seen;
  const faultBefore = (at) => faults.findLast((fault) => fault.at <= at)?.name ?? 'none';
  const allowed = {};
  const unallowed = [];
  const ended = seen.diedEarly?.at ?? Infinity;
  const told = (name) =>
    log.lines.flatMap(({ at, event }) => (event?.event === name ? [{ at, pid: event.pid }] : []));
  const readies = told('worker-ready');
  // A worker that drains after an error takes no more calls, and its successor is not there yet.
  const gone = [...cluster.deaths, ...told('worker-failing')];
  for (const loss of clients.losses) {
    const cause =
      allowance(loss, cluster.deaths, context.shortages) ?? refusal(loss, readies, gone);
    if (loss.at > ended) {
      // One problem, not hundreds.
    } else if (cause === undefined) {
      const lines = log.around(loss.at, AROUND_MS, AROUND_MS).map(({ at, text }) => ({ at, text }));
      unallowed.push({ ...loss, after: faultBefore(loss.at), lines });
    } else {
      allowed[cause] = (allowed[cause] ?? 0) + 1;
    }
  }
  const flat = flatness(
    faults.map(({ sample }) => sample).filter((sample) => sample !== undefined),
  );
  const problems = problemsOf(seen, flat, ended).map((problem) => ({
    ...problem,
    after: problem.at && faultBefore(problem.at),
  }));
  return {
    seed: settings.seed,
    ok: unallowed.length === 0 && problems.length === 0,
    faults: tableOf(settings.faults, faults),
    clients: Object.fromEntries(
      Object.entries(clients.counts).map(([kind, counts]) => [
        kind,
        { ...counts, ...countBy(clients.losses.filter(({ client }) => client === kind)) },
      ]),
    ),
    allowed,
    unallowed,
    problems,
    flat,
    scrapes: { answered: scraper.scrapes, missed: scraper.missed.length },
    sequence: faults,
    lastLines: log.lines.slice(-20).map(({ at, text }) => ({ at, text })),
  };
}

/** What is wrong besides losses, `{ at, what }`; `at` where it has a time. */
function problemsOf({ context, clients, scraper, log, diedEarly, ...seen }, flat, ended) {
  const missed = scraper.missed.filter(
    ({ at }) =>
      at < ended &&
      !context.silences.some(({ from, to }) => from <= at + SCRAPE_MS && to >= at - SCRAPE_MS),
  );
  const unexplained = log.lines.filter(
    ({ event }) => event?.event === 'worker-died' && !context.mayDie(event.pid),
  );
  const problems = [
    ...context.failures,
    ...unexplained.map(({ at, text }) => ({ at, what: `no fault was to kill it: ${text}` })),
    ...scraper.falls.map(({ at, series, from, to }) => ({
      at,
      what: `${series} fell: ${from} to ${to}`,
    })),
    ...missed.map(({ at, why }) => ({
      at,
      what: `/metrics of the primary did not answer: ${why}`,
    })),
    ...flat
      .filter((row) => !row.flat)
      .map(({ name, early, late, allowed }) => ({
        what: `${name} of the primary grew: ${early} to ${late}, allowed ${allowed}`,
      })),
    ...seen.endedBadly.map((kind) => ({ what: `the process of the clients ${kind} failed` })),
  ];
  const unseen = clients.lost - clients.losses.length;
  if (unseen > 0) problems.push({ what: `${unseen} losses more than were looked at` });
  if (diedEarly) problems.push({ what: `the primary ended during the run: ${exitOf(diedEarly)}` });
  if (seen.orphans.length > 0) problems.push({ what: `left behind: ${seen.orphans.join(', ')}` });
  if (seen.exit?.code !== 0) {
    problems.push({ what: `the cluster ended with ${exitOf(seen.exit)}, not 0` });
  }
  return problems;
}

function tableOf(kinds, faults) {
  return kinds.map(({ name }) => {
    const made = faults.filter((fault) => fault.name === name);
    const recovered = made.filter(({ recoveryMs }) => recoveryMs !== undefined);
    const recovery = recovered.map(({ recoveryMs }) => recoveryMs);
    const took = recovered.map(({ injectMs, recoveryMs }) => injectMs + recoveryMs);
    return { name, count: made.length, took: spread(took), recovery: spread(recovery) };
  });
}

function spread(values) {
  if (values.length === 0) return undefined;
  return { medianMs: median(values), maxMs: Math.max(...values) };
}

function countBy(losses) {
  const counts = {};
  for (const { outcome } of losses) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

function exitOf(exit) {
  if (exit === undefined) return 'nothing: it had to be killed';
  return exit.signal ?? `code ${exit.code}`;
}
