import { median } from '../statistics.mjs';
import { describeMeasurement } from './describe-measurement.mjs';
import { entriesOf, identityOf, mediansOf } from './rows.mjs';
import { pidsOf, watchMachine } from './watch-machine.mjs';

/** What everything else is compared with. */
const DEFAULT_SYSTEM = 'nestjs-cluster';

/**
 * Measures contestants against each other: every round brings each of them up anew, measures it and
 * ends it, one after the other and in turn from the first and from the last on, so that a drift of
 * the machine meets all of them. What a request costs is compared by `compareWindows()`.
 *
 * @param contestants what is measured: `system`, and where they differ from those of the run
 *   `label`, `workers`, `env` and whatever `measure` wants to know.
 * @param measure what is measured of a running contestant: metrics by name, `errors` by kind.
 * @returns a row for each contestant: medians of the rounds, errors of all of them.
 */
export async function compare({ contestants, rounds, group, measure, run }) {
  const { node, adapter, workers, progress, nextPort, disturbances } = run;
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
          (running) => measure(running, settings),
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
      tell(describeMeasurement(measured, { counts, disturbed }));
      disturbances.check();
    }
  }
  const missed = entries.some(({ notRun, rounds: kept }) => notRun === undefined && !kept.size);
  if (missed) disturbances.refuse();
  return entries.map((entry) => rowOf(group, entry, entries));
}

/** What was measured, and who else used the machine meanwhile. */
async function bringUp(system, options, measure) {
  const endWatch = watchMachine();
  const running = await system.start(options);
  try {
    const measured = await measure(running);
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
