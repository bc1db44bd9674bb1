import { median } from '../bench/statistics.mjs';

/** Maximum delay with which a death is noticed here on a busy machine. */
const LAG_MS = 1_000;
const AROUND_MS = 1_500;

/** How long a call of `@CpuBound()` waits for a thread at most. */
const QUEUE_TIMEOUT_MS = 5_000;

/** How much more the primary may hold late in a run than early in it, at rest both times. */
const TOLERANCES = {
  descriptors: { more: 3, ratio: 0 },
  heapBytes: { more: 4 * 2 ** 20, ratio: 0.15 },
  residentBytes: { more: 16 * 2 ** 20, ratio: 0.1 },
};
/** Fewer say nothing. */
const LEAST_SAMPLES = 6;

/** The result of each check of a run, as plain data. report.mjs makes a text of it. */
export function judge(settings, seen) {
  const { cluster, clients, scraper, faults } = seen;
  const faultBefore = (at) => faults.findLast((fault) => fault.at <= at)?.name ?? 'none';
  const allowed = {};
  const unallowed = [];
  // After the primary has ended, all losses are one problem.
  const ended = seen.diedEarly?.at ?? Infinity;
  for (const loss of clients.losses.filter(({ at }) => at <= ended)) {
    const cause = allowance(loss, cluster.deaths) ?? overdue(loss, faults);
    if (cause !== undefined) {
      allowed[cause] = (allowed[cause] ?? 0) + 1;
      continue;
    }
    const around = cluster.lines.filter(({ at }) => Math.abs(at - loss.at) <= AROUND_MS);
    const lines = around.map(lineOf);
    unallowed.push({ ...loss, after: faultBefore(loss.at), lines });
  }
  const flat = flatness(faults.map(({ sample }) => sample).filter(Boolean));
  const problems = problemsOf(seen, flat).map((problem) => ({
    ...problem,
    after: problem.at && faultBefore(problem.at),
  }));
  return {
    seed: settings.seed,
    ok: unallowed.length === 0 && problems.length === 0,
    faults: settings.faults.map(({ name }) => {
      const made = faults.filter((fault) => fault.name === name);
      return { name, count: made.length, recoveryMs: made.map((one) => one.recoveryMs ?? NaN) };
    }),
    clients: Object.fromEntries(
      Object.entries(clients.counts).map(([kind, counts]) => [
        kind,
        { ...counts, lost: clients.losses.filter(({ client }) => client === kind).length },
      ]),
    ),
    allowed,
    unallowed,
    problems,
    flat,
    scrapes: scraper.scrapes,
    lastLines: cluster.lines.slice(-20).map(lineOf),
  };
}

/**
 * Decides whether a loss is allowed, and by which cause. A loss is allowed only
 *
 * 1. on a connection of a worker that died because of a fault: from the fault on, if the client saw
 *    a sign of life on the connection before the death;
 * 2. on a connection without any answer yet, so that its worker is unknown, if a worker that a
 *    fault was to kill died before the loss.
 *
 * @param deaths deaths of workers, `{ pid, allowedAt, at, fault }`; `fault` is undefined if no fault
 *   was to kill the worker.
 * @returns the cause that allows the loss, or undefined.
 */
export function allowance({ since, at, answered, pid }, deaths) {
  const death = deaths.find((each) => {
    if (each.fault === undefined || since > each.at) return false;
    if (pid !== undefined) return each.pid === pid && at >= each.allowedAt;
    return !answered && at >= each.at - LAG_MS;
  });
  return death && (pid === undefined ? `${death.fault}, owner unknown` : death.fault);
}

/**
 * A call waits for a thread for a limited time, which goes on while all processes are stopped. Its
 * 503 is allowed if the call has waited less without the time that they were stopped.
 *
 * @returns the cause that allows the loss, or undefined.
 */
export function overdue({ what, asked, at }, faults) {
  if (!/^503 .*it waited too long for a thread/.test(what)) return undefined;
  const waitedMs = at - asked;
  const fault = faults.find(({ name, stopped }) => {
    if (name !== 'group' || stopped === undefined) return false;
    const stoppedMs = Math.min(at, stopped.to) - Math.max(asked, stopped.from);
    return waitedMs >= QUEUE_TIMEOUT_MS && waitedMs - Math.max(0, stoppedMs) < QUEUE_TIMEOUT_MS;
  });
  return fault && 'group, waited 5 s for a thread';
}

/**
 * Compares the medians of the second and of the last third of what was sampled at rest: the first
 * third is warm-up.
 *
 * @returns rows `{ name, early, late, allowed, flat }`; none where there are too few samples.
 */
export function flatness(samples) {
  if (samples.length < LEAST_SAMPLES) return [];
  const third = Math.floor(samples.length / 3);
  const middle = (some, name) =>
    median(some.map((sample) => sample[name]).filter((value) => value !== undefined));
  return Object.entries(TOLERANCES).map(([name, { more, ratio }]) => {
    const early = middle(samples.slice(third, -third), name);
    const late = middle(samples.slice(-third), name);
    const allowed = early + Math.max(more, early * ratio);
    return { name, early, late, allowed, flat: late <= allowed };
  });
}

/** What is wrong besides losses, `{ at, what }`; `at` where it has a time. */
function problemsOf({ context, cluster, clients, scraper, ...seen }, flat) {
  const unexplained = cluster.lines.filter(
    ({ event }) => event?.event === 'worker-died' && !context.mayDie(event.pid),
  );
  const unseen = clients.lost - clients.losses.length;
  return [
    ...context.failures,
    ...unexplained.map(({ at, text }) => ({ at, what: `no fault was to kill it: ${text}` })),
    ...scraper.falls.map(({ at, series, from, to }) => ({
      at,
      what: `${series} fell: ${from} to ${to}`,
    })),
    ...[
      ...flat
        .filter((row) => !row.flat)
        .map(
          ({ name, early, late, allowed }) =>
            `${name} of the primary grew: ${early} to ${late}, allowed ${allowed}`,
        ),
      ...seen.endedBadly.map((kind) => `the process of the clients ${kind} failed`),
      scraper.scrapes === 0 && 'no scrape was answered',
      unseen > 0 && `${unseen} losses more than were looked at`,
      seen.diedEarly && `the primary ended during the run: ${exitOf(seen.diedEarly)}`,
      seen.orphans.length > 0 && `left behind: ${seen.orphans.join(', ')}`,
      seen.exit?.code !== 0 && `the cluster ended with ${exitOf(seen.exit)}, not 0`,
    ]
      .filter(Boolean)
      .map((what) => ({ what })),
  ];
}

function lineOf({ at, text }) {
  return `${new Date(at).toISOString().slice(11, 23)} ${text.slice(0, 160)}`;
}

function exitOf(exit) {
  if (exit === undefined) return 'nothing: it had to be killed';
  return exit.signal ?? `code ${exit.code}`;
}
