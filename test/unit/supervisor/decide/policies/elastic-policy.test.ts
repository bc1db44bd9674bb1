import { describe, expect, it } from 'vitest';
import {
  judgeLoad,
  type Load,
  type LoadHistory,
  NO_HISTORY,
  type Verdict,
} from '../../../../../src/supervisor/decide/policies/elastic.policy.js';

const LIMITS = { min: 1, max: 4 };

/** A cluster whose load is read once a second. Workers that it adds are ready at once. */
class Cluster {
  now = 0;
  history: LoadHistory = NO_HISTORY;

  constructor(public workers: number) {}

  /** The verdicts of `seconds`, each with the second in which it came. */
  live(seconds: number, load: Partial<Load>): string[] {
    const verdicts: string[] = [];
    for (let second = 1; second <= seconds; second++) {
      this.now += 1_000;
      const verdict = this.#judge({ utilization: 0.6, waiting: 0, hasRoom: true, ...load });
      if (verdict === undefined) continue;
      this.workers += verdict.by;
      verdicts.push(`${verdict.scaling} after ${second} s`);
    }
    return verdicts;
  }

  #judge(load: Load): Verdict {
    const { history, verdict } = judgeLoad(this.history, load, this.workers, LIMITS, this.now);
    this.history = history;
    return verdict;
  }
}

describe('the number of workers, by load', () => {
  it('stays where the workers are neither busy nor idle', () => {
    expect(new Cluster(2).live(1_000, { utilization: 0.75 })).toEqual([]);
    expect(new Cluster(2).live(1_000, { utilization: 0.25 })).toEqual([]);
  });

  it('grows by one once the workers have been busy for 10 s', () => {
    const cluster = new Cluster(2);
    expect(cluster.live(11, { utilization: 0.76 })).toEqual(['up utilization after 11 s']);
    expect(cluster.live(11, { utilization: 0.76 })).toEqual(['up utilization after 11 s']);
    expect(cluster.live(60, { utilization: 1 })).toEqual([]);
  });

  it('does not grow for shorter bursts', () => {
    const cluster = new Cluster(2);
    for (let burst = 0; burst < 20; burst++) {
      expect(cluster.live(10, { utilization: 1 })).toEqual([]);
      expect(cluster.live(1, { utilization: 0.7 })).toEqual([]);
    }
  });

  it('grows if connections wait in three samples in a row, or if many wait', () => {
    const cluster = new Cluster(1);
    expect(cluster.live(2, { waiting: 33 })).toEqual([]);
    expect(cluster.live(1, {})).toEqual([]);
    expect(cluster.live(3, { waiting: 1 })).toEqual(['up backlog after 3 s']);
    expect(cluster.live(1, { waiting: 34 })).toEqual(['up backlog after 1 s']);
  });

  it('does not grow beyond the memory', () => {
    const cluster = new Cluster(1);
    expect(cluster.live(60, { utilization: 1, waiting: 100, hasRoom: false })).toEqual([]);
    expect(cluster.live(1, { utilization: 1, hasRoom: true })).toEqual([
      'up utilization after 1 s',
    ]);
  });

  it('shrinks by one once the rest would have been half idle for a minute', () => {
    const cluster = new Cluster(3);
    expect(cluster.live(61, { utilization: 0.33 })).toEqual(['down idle after 61 s']);
    expect(cluster.live(61, { utilization: 0.24 })).toEqual(['down idle after 61 s']);
    expect(cluster.live(500, { utilization: 0 })).toEqual([]);
  });

  it('does not shrink while connections wait', () => {
    const cluster = new Cluster(3);
    for (let i = 0; i < 10; i++) {
      expect(cluster.live(30, { utilization: 0.1 })).toEqual([]);
      expect(cluster.live(1, { utilization: 0.1, waiting: 1 })).toEqual([]);
    }
  });

  it('waits twice as long before it shrinks again, if the worker was needed within a minute', () => {
    const cluster = new Cluster(2);
    const shrink = (): number => {
      const before = cluster.now;
      while (cluster.workers > 1) cluster.live(1, { utilization: 0.1 });
      return (cluster.now - before) / 1_000;
    };
    const grow = (afterSeconds: number): void => {
      cluster.live(afterSeconds - 1, {});
      cluster.live(1, { waiting: 34 });
    };
    const waits = [59, 59, 59, 59, 59, 59, 90, 90, 90].map((seconds) => {
      const waited = shrink();
      grow(seconds);
      return waited;
    });
    expect(waits).toEqual([61, 121, 241, 481, 961, 961, 961, 481, 241]);
  });

  it('follows bounds that changed', () => {
    const history = NO_HISTORY;
    const quiet = { utilization: 0.1, waiting: 0, hasRoom: true };
    const idle = { ...history, idleSince: 0 };
    expect(judgeLoad(idle, quiet, 3, { min: 3, max: 4 }, 70_000).verdict).toBeUndefined();
    expect(judgeLoad(idle, quiet, 3, { min: 2, max: 4 }, 70_000).verdict).toMatchObject({ by: -1 });
  });
});

const DAY_S = 86_400;
const BOOT_S = 2;
const MAX = 8;
/** The connections that a worker serves in a second. */
const PER_SECOND = 100;

/** A repeatable noise between -1 and 1. */
const noise = (second: number): number => Math.sin(second * 12.9898) * Math.cos(second * 78.233);

/** Loads of a day, in workers that it keeps busy. */
const SHAPES: Readonly<Record<string, (second: number) => number>> = {
  steady: () => 2,
  sine: (t) => 3 - 2.5 * Math.cos((t / DAY_S) * 2 * Math.PI),
  step: (t) => (t < DAY_S / 3 ? 1 : t < (2 * DAY_S) / 3 ? 5 : 2),
  spike: (t) => (t % 7_200 < 300 ? 5 : 1),
  sawtooth: (t) => 0.5 + (5 * (t % 10_800)) / 10_800,
  'slow leak': (t) => 0.5 + (5 * t) / DAY_S,
  'all wait': () => 0.05,
  noisy: (t) => Math.max(0, 2 + 0.5 * noise(t)),
  'noisy sine': (t) => Math.max(0, 3 - 2 * Math.cos((t / DAY_S) * 4 * Math.PI) + 0.4 * noise(t)),
};

/** The numbers of workers of a day: of the policy, and of an oracle that knows the load of each minute. */
function day(load: (second: number) => number, queuesInThreads = false) {
  let history = NO_HISTORY;
  let [workers, readyAt, queue] = [1, 0, 0];
  const chosen: number[] = [];
  for (let t = 0; t < DAY_S; t++) {
    const serving = t < readyAt ? Math.max(1, workers - 1) : workers;
    queue = Math.min(40, Math.max(0, queue + load(t) - serving)); // clients give up
    chosen.push(workers);
    if (t < readyAt) continue;
    const utilization = queue > 0 ? 1 : Math.min(1, load(t) / serving);
    // Calls that wait for threads are in the workers: no connection waits.
    const waiting = queuesInThreads ? 0 : Math.round(queue * PER_SECOND);
    const sample = { utilization, waiting, hasRoom: true };
    const judged = judgeLoad(history, sample, workers, { min: 1, max: MAX }, t * 1_000);
    history = judged.history;
    if (judged.verdict === undefined) continue;
    workers += judged.verdict.by;
    if (judged.verdict.by === 1) readyAt = t + BOOT_S;
  }
  return chosen;
}

/** The numbers by the same thresholds, if the load of each minute is known and a change takes no time. */
function oracle(load: (second: number) => number): number[] {
  let workers = 1;
  const perMinute = Array.from({ length: DAY_S / 60 }, (_, minute) => {
    const loads = Array.from({ length: 60 }, (_, second) => load(minute * 60 + second));
    const mean = loads.reduce((sum, each) => sum + each, 0) / 60;
    while (workers < MAX && mean / workers > 0.75) workers += 1;
    while (workers > 1 && mean / (workers - 1) < 0.5) workers -= 1;
    return workers;
  });
  return Array.from({ length: DAY_S }, (_, t) => perMinute[Math.floor(t / 60)]!);
}

const changes = (numbers: readonly number[]): number =>
  numbers.reduce((sum, each, i) => sum + Math.abs(each - (numbers[i - 1] ?? each)), 0);

/** When a worker was taken away less than a minute after one was added. */
function turns(numbers: readonly number[]): number[] {
  return numbers.flatMap((each, t) => {
    const before = numbers.slice(Math.max(0, t - 60), t);
    const grew = before.some((one, i) => i > 0 && one > before[i - 1]!);
    return each < (numbers[t - 1] ?? each) && grew ? t : [];
  });
}

describe('a day of', () => {
  it.each([
    ...Object.entries(SHAPES).map(([name, load]) => [name, load, false] as const),
    ['all offload', SHAPES['sine']!, true] as const,
  ])('%s', (_, load, queuesInThreads) => {
    const chosen = day(load, queuesInThreads);
    const best = oracle(load);
    const near = chosen.filter((each, t) => Math.abs(each - best[t]!) <= 1).length / DAY_S;
    expect(near).toBeGreaterThan(0.95);
    expect(changes(chosen)).toBeLessThanOrEqual(Math.max(4, 2 * changes(best)));
    expect(turns(chosen)).toEqual([]);
  });

  // Only waiting connections show a herd. In the mean of a minute it is hardly a load.
  it('thundering herds', () => {
    const chosen = day((t) => (t % 900 < 5 ? 8 : 0.6));
    expect(Math.max(...chosen.slice(900, 930))).toBeGreaterThan(4);
    expect(new Set(chosen.slice(1_500, 1_800))).toEqual(new Set([2]));
    expect(turns(chosen)).toEqual([]);
  });
});
