import { setTimeout as delay } from 'node:timers/promises';
import { warmUp, wrk } from '../load/wrk.mjs';
import { measureUsage } from '../usage.mjs';
import { BusyMachineError, pidsOf, untilAtRest, watchMachine } from '../machine-use.mjs';
import { describeMeasurement } from '../report/metrics.mjs';
import { entriesOf, identityOf, mediansOf } from './rows.mjs';
import { comparedMetrics } from './window-statistics.mjs';

/** Until the last connections of a window are closed; then no thread runs, and all CPU is booked. */
const SETTLE_MS = 100;

/**
 * Compares what a request costs, on a machine whose speed drifts. All contestants are up at once.
 * Short windows of load go round among them, forwards and backwards in turn, and each is compared
 * with its neighbour of the baseline. That is repeated with all of them started anew: chance of one
 * start, such as what V8 makes of it, is not taken for a difference.
 *
 * @param contestants `system`, and where they differ `label` and `env`.
 * @param baseline name of the system that the others are compared with.
 * @param load of wrk, without its length.
 * @returns a row for each contestant: medians of its windows, and the comparison.
 */
export async function compareWindows({ contestants, baseline, load, group, run }) {
  const entries = await entriesOf(contestants, run, group);
  for (const entry of entries) Object.assign(entry, { windows: [] });
  const able = () => entries.filter(({ notRun }) => notRun === undefined);
  run.disturbances.plan(able().length * run.starts * run.windows);
  for (let start = 1; start <= run.starts; start += 1) {
    const order = inOrder(able(), baseline);
    if (order.length === 0) break;
    await measureStart({ order, start, load, group, run });
  }
  const countedOf = ({ windows }) => windows.filter(({ counts }) => counts);
  if (able().some((entry) => countedOf(entry).length === 0)) run.disturbances.refuse();
  const base = able().find(({ contestant }) => contestant.system.name === baseline);
  const baseWindows = base && countedOf(base);
  return entries.map((entry) => {
    const identity = identityOf(group, entry);
    if (entry.notRun !== undefined) return identity;
    const windows = entry === base ? baseWindows : countedOf(entry);
    return {
      ...identity,
      ...mediansOf(windows.map(({ metrics }) => metrics)),
      ...comparedMetrics(windows, baseWindows, entries.length),
      windows: entry.windows.map((window) => ({ ...window, metrics: undefined })),
    };
  });
}

/** The baseline in the middle: nobody's neighbour is far. */
function inOrder(entries, baseline) {
  const isBaseline = ({ contestant }) => contestant.system.name === baseline;
  const others = entries.filter((entry) => !isBaseline(entry));
  const middle = Math.ceil(others.length / 2);
  return [...others.slice(0, middle), ...entries.filter(isBaseline), ...others.slice(middle)];
}

async function measureStart({ order, start, load, group, run }) {
  const { node, adapter, workers, nextPort } = run;
  const systems = order.map((entry) => ({ entry }));
  const tell = (entry, text) =>
    run.progress(`${group}, start ${start}/${run.starts}, ${entry.label}: ${text}`);
  // One that fails does not take the others' figures with it; it is ended with them.
  const each = async (some, act) => {
    for (const system of some) {
      if (system.entry.notRun !== undefined) continue;
      try {
        await act(system);
      } catch (error) {
        run.signal.throwIfAborted();
        if (error instanceof BusyMachineError) throw error;
        [system.entry.notRun] = error.message.split('\n');
        tell(system.entry, `failed: ${error.message}`);
      }
    }
  };
  try {
    await each(systems, async (system) => {
      const { system: own, env = {} } = system.entry.contestant;
      system.running = await own.start({ node, adapter, workers, port: await nextPort(), env });
    });
    await each(systems, ({ running }) => untilAtRest(running));
    await each(systems, ({ running }) => warmUp(running, load));
    await each(systems, async (system) => (system.pids = pidsOf(system.running)));
    let place = 0;
    for (let pass = 0; pass < run.windows; pass += 1) {
      await each(pass % 2 === 0 ? systems : systems.toReversed(), async (system) => {
        const waiting = systems.flatMap((other) => (other === system ? [] : (other.pids ?? [])));
        const { metrics, use } = await measureWindow(system, waiting, load, run.seconds);
        const { counts, disturbed } = run.disturbances.judge(use);
        place += 1;
        system.entry.windows.push({
          start,
          place,
          cpuMicros: metrics.cpuMicros,
          requests: metrics.requests,
          othersShare: use.others.share,
          waitingShare: use.waiting,
          counts,
          metrics,
        });
        const text = describeMeasurement(metrics, run.metric, { counts, disturbed });
        tell(system.entry, `window ${pass + 1}/${run.windows}: ${text}`);
        run.disturbances.check();
      });
    }
  } finally {
    for (const { running } of systems) await running?.stop();
  }
}

async function measureWindow({ running, pids }, waiting, load, seconds) {
  const endWatch = watchMachine();
  const used = measureUsage(running);
  const result = await wrk(running, { ...load, seconds });
  await delay(SETTLE_MS);
  const metrics = { ...result, ...used(result.requests) };
  const use = endWatch({ pids, waiting });
  if (metrics.cpuMicros === undefined) throw new Error('answered nothing in a window');
  return { metrics, use };
}
