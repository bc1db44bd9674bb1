import type { Measurement, Setting } from './measurement.js';
import { cheapest, hasRoom, MARGIN_RATIO } from './recommendation.js';

/** The limits of the settings that are tried. */
export interface Limits {
  readonly maxWorkers: number;
  /** The number of cores: more threads would compute nothing faster. */
  readonly maxThreads: number;
  /** Whether the user has set the number of threads. If so, it is not varied. */
  readonly threadsAreSet: boolean;
}

/** A p99 counts as better if it is lower by at least this share. */
const P99_MARGIN_RATIO = 0.2;

/** Stops after this many settings in a row that do not help. With a single setting, that may be chance. */
const STOP_AFTER = 2;

/** Up to this number of workers or threads, each step adds 1. After that, each step adds half of the number. */
const ONE_BY_ONE = 8;

/**
 * The setting to measure next; `undefined` if no further setting is worth it.
 *
 * The first setting is one worker, with the app's own number of threads. If the route runs in
 * threads, the next settings give one worker more and more threads. The settings after these divide
 * the best number of threads among more and more workers. If the route does not run in threads,
 * each setting only adds workers.
 */
export function nextSetting(
  measured: readonly Measurement[],
  { maxWorkers, maxThreads, threadsAreSet }: Limits,
): Setting | undefined {
  const [first] = measured;
  if (first === undefined) return { workers: 1 };
  const varied = first.threads !== undefined && !threadsAreSet;

  const alone = measured
    .filter(({ setting }) => setting.workers === 1)
    .toSorted((a, b) => (a.threads ?? 0) - (b.threads ?? 0));
  if (varied) {
    // The first measurement, with the app's own number of threads, counts as one of the steps.
    const threads = steps(maxThreads).find((n) => alone.every((each) => each.threads !== n));
    const below = alone.filter((each) => threads !== undefined && each.threads! < threads);
    if (threads !== undefined && !noLongerHelps(below)) return { workers: 1, threads };
  }

  const best = cheapest(alone);
  const more = measured.filter(({ setting }) => setting.workers > 1);
  const workers = steps(maxWorkers).find((n) => n > (more.at(-1)?.setting.workers ?? 1));
  if (workers === undefined || noLongerHelps([best, ...more])) return undefined;
  return varied ? { workers, threads: Math.ceil(best.threads! / workers) } : { workers };
}

/** The numbers to try: 1, 2, … 8, 12, 18, … and `max`. */
export function steps(max: number): number[] {
  const numbers: number[] = [];
  for (let n = 1; n < max; n = n < ONE_BY_ONE ? n + 1 : Math.ceil(n * 1.5)) numbers.push(n);
  return [...numbers, max];
}

/**
 * Whether more workers or threads no longer help. True if the last two settings had neither
 * more throughput nor a better p99 than all settings before them, or if an earlier setting already
 * had idle event loops.
 */
function noLongerHelps(measured: readonly Measurement[]): boolean {
  if (measured.slice(0, -1).some(hasRoom)) return true;
  if (measured.length <= STOP_AFTER) return false;
  const before = measured.slice(0, -STOP_AFTER);
  const rate = Math.max(...before.map(({ requestsPerSecond }) => requestsPerSecond));
  const p99Ms = Math.min(...before.map((each) => each.p99Ms));
  return measured
    .slice(-STOP_AFTER)
    .every(
      (each) =>
        each.requestsPerSecond < rate * (1 + MARGIN_RATIO) &&
        each.p99Ms > p99Ms * (1 - P99_MARGIN_RATIO),
    );
}
