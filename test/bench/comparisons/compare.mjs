import { median } from '../statistics.mjs';
import { pidsOf, untilAtRest, watchMachine } from '../machine-use.mjs';
import { describeMeasurement } from '../report/metrics.mjs';
import { DEFAULT_SYSTEM } from '../report/tables.mjs';
import { entriesOf, identityOf, mediansOf } from './rows.mjs';

/**
 * Measures contestants against each other. Every round starts, measures and stops each of them, one
 * after the other. Every second round has the reverse order, so that a drift of the machine affects
 * all of them. The cost of a request is compared by `compareWindows()` instead.
 *
 * @param contestants `system`; `label`, `workers` and `env` if they differ from the run's; and
 *   anything that `measure` needs.
 * @param measure measures a running contestant at rest: metrics by name, `errors` by kind. Gets the
 *   time from its spawn until all of its workers answered too, in ms.
 * @returns a row for each contestant: medians of the rounds, errors of all of them.
 */
export async function compare({ contestants, measure, run, group = run.group }) {
  const { node, adapter, workers, rounds, progress, nextPort, disturbances } = run;
  const entries = await entriesOf(contestants, run, group);
  for (const entry of entries) entry.rounds = new Map();
  disturbances.plan(entries.filter(({ notRun }) => notRun === undefined).length * rounds);
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? entries : entries.toReversed();
    for (const entry of order) {
      if (entry.notRun !== undefined) continue;
      const { system, env = {}, ...own } = entry.contestant;
      const settings = { workers, offload: system.offload, ...own };
      const tell = (text) =>
        progress(`${group}, round ${round + 1}/${rounds}, ${entry.label}: ${text}`);
      let result;
      try {
        result = await bringUp(
          system,
          { node, adapter, workers: settings.workers, port: await nextPort(), env },
          (running, startMs) => measure(running, { ...settings, startMs }),
        );
      } catch (error) {
        run.signal.throwIfAborted();
        // One that fails does not take the others' figures with it.
        [entry.notRun] = error.message.split('\n');
        tell(`failed: ${error.message}`);
        continue;
      }
      const { measured, use } = result;
      const { counts, disturbed } = disturbances.judge(use);
      if (counts) entry.rounds.set(round, measured);
      tell(describeMeasurement(measured, run.metric, { counts, disturbed }));
      disturbances.check();
    }
  }
  const missed = entries.some(({ notRun, rounds: kept }) => notRun === undefined && !kept.size);
  if (missed) disturbances.refuse();
  return entries.map((entry) => rowOf(group, entry, entries));
}

/** Measures one system from its start to its stop, and how much others used the machine. */
async function bringUp(system, options, measure) {
  const endWatch = watchMachine();
  const begun = performance.now();
  const running = await system.start(options);
  try {
    const startMs = performance.now() - begun;
    await untilAtRest(running);
    const measured = await measure(running, startMs);
    return { measured, use: endWatch({ pids: pidsOf(running) }) };
  } finally {
    await running.stop();
  }
}

function rowOf(group, entry, entries) {
  const identity = identityOf(group, entry);
  if (entry.notRun !== undefined) return identity;
  const rounds = [...entry.rounds.values()];
  return { ...identity, ...mediansOf(rounds), ...ratioOf(entry, entries), rounds };
}

/** Each round against the default's of the same round: what drifts from round to round cancels out. */
function ratioOf(entry, entries) {
  const ours = entries.find(
    ({ contestant, notRun }) => contestant.system.name === DEFAULT_SYSTEM && notRun === undefined,
  );
  const ratios = [...entry.rounds]
    .map(([round, { cpuMicros }]) => cpuMicros / ours?.rounds.get(round)?.cpuMicros)
    .filter((ratio) => Number.isFinite(ratio));
  return ratios.length === 0 ? {} : { cpuRatio: median(ratios) };
}
