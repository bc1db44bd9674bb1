import { describe, expect, it } from 'vitest';
import { cpuBetween } from '../bench/cpu-time.mjs';
import { BusyMachineError, Disturbances } from '../bench/disturbances.mjs';
import { othersBetween, shareBetween } from '../bench/machine-use.mjs';

const CORES = 2;
/** Clock ticks that two cores have in a window of two seconds. */
const CAPACITY = 400;

type Ticks = Record<number, { parent?: number; ticks: number; kernel?: boolean }>;

/** A reading of a machine. By default `work` is the sum of its processes' ticks. */
function machine(atMs: number, processes: Ticks, totals: { work?: number; stolen?: number } = {}) {
  const all = Object.entries(processes).map(
    ([pid, { parent = 1, ticks, kernel = false }]) =>
      [Number(pid), { parent, ticks, kernel }] as const,
  );
  const work = all.reduce((sum, [, { ticks }]) => sum + ticks, 0);
  return { atMs, work, stolen: 0, processes: new Map(all), ...totals };
}

const BENCH = 10;
const none = { share: 0, top: [] };

describe('what others used', () => {
  it('is that of processes that do not descend from the benchmark', () => {
    const before = machine(0, {
      10: { ticks: 5 },
      11: { parent: 10, ticks: 50 },
      20: { ticks: 9 },
    });
    const after = machine(2_000, {
      10: { ticks: 15 },
      11: { parent: 10, ticks: 200 },
      20: { ticks: 29 },
    });
    expect(othersBetween(before, after, [BENCH], CORES)).toEqual({
      share: 20 / CAPACITY,
      top: [{ pid: 20, share: 20 / CAPACITY }],
    });
    expect(shareBetween(before, after, [11], CORES)).toBe(150 / CAPACITY);
  });

  it('includes those that came meanwhile, and those that ended, by who waited for them', () => {
    const before = machine(0, {
      10: { ticks: 0 },
      20: { ticks: 5 },
      21: { parent: 20, ticks: 900 },
    });
    // 21 used 12 more before it ended; then all of its time is its parent's.
    const after = machine(2_000, { 10: { ticks: 0 }, 20: { ticks: 917 }, 22: { ticks: 8 } });
    const others = othersBetween(before, after, [BENCH], CORES);
    expect(others.top).toEqual([
      { pid: 20, share: 12 / CAPACITY },
      { pid: 22, share: 8 / CAPACITY },
    ]);
  });

  it('includes what nobody here can see, and what other virtual machines took', () => {
    const before = machine(0, { 10: { ticks: 0 } }, { work: 100 });
    const after = machine(2_000, { 10: { ticks: 150 } }, { work: 290, stolen: 20 });
    expect(othersBetween(before, after, [BENCH], CORES)).toEqual({ share: 60 / CAPACITY, top: [] });
  });

  it('is not what load generators that have ended used, nor the kernel for the load', () => {
    const before = machine(0, {
      10: { ticks: 0 },
      11: { parent: 10, ticks: 70 },
      2: { ticks: 0, kernel: true },
    });
    const after = machine(2_000, { 10: { ticks: 300 }, 2: { ticks: 30, kernel: true } });
    expect(othersBetween(before, after, [BENCH], CORES)).toEqual(none);
  });
});

describe('CPU time of a process', () => {
  const reading = (seconds: number, threads: Record<string, number>) => ({
    seconds,
    threads: new Map(Object.entries(threads)),
  });

  it('is exact to less than a clock tick', () => {
    const before = reading(1.2, { a: 1.0, b: 0.2 });
    expect(cpuBetween(before, reading(1.21, { a: 1.0004, b: 0.2003 }))).toBeCloseTo(0.0007, 6);
    expect(cpuBetween(undefined, reading(0, { a: 0.0042 }))).toBe(0.0042);
  });

  it('includes threads that ended meanwhile, to the clock tick', () => {
    const before = reading(5, { a: 1, b: 4 });
    expect(cpuBetween(before, reading(5.5, { a: 1.2 }))).toBeCloseTo(0.5);
  });
});

describe('a measurement on a machine in use', () => {
  const busy = { others: { share: 0.4, top: [{ pid: 7, share: 0.4 }] } };
  const quiet = { others: { share: 0.029, top: [{ pid: 7, share: 0.029 }] } };
  const nameOf = (pid: number) => `program ${pid}`;

  it('is discarded where others used more than 3 % of it, and the reason is told', () => {
    const disturbances = new Disturbances({ nameOf });
    disturbances.plan(8);
    expect(disturbances.judge(quiet)).toEqual({ counts: true });
    expect(disturbances.judge(busy)).toEqual({
      counts: false,
      disturbed: 'others used 40 % of the machine',
    });
    expect(disturbances.discarded).toBe(1);
  });

  it('is discarded where systems that should wait worked', () => {
    const disturbances = new Disturbances({ nameOf });
    disturbances.plan(8);
    expect(disturbances.judge({ others: none, waiting: 0.08 })).toEqual({ counts: true });
    expect(disturbances.judge({ others: none, waiting: 0.2 })).toMatchObject({ counts: false });
  });

  it('ends the run once a quarter of all is lost, with the names of those who disturb', () => {
    const disturbances = new Disturbances({ nameOf });
    disturbances.plan(8);
    disturbances.judge(busy);
    disturbances.judge(quiet);
    disturbances.judge({ others: { share: 0.5, top: [{ pid: 9, share: 0.5 }] } });
    disturbances.check();
    disturbances.judge(busy);
    expect(() => disturbances.check()).toThrow(BusyMachineError);
    expect(() => disturbances.refuse()).toThrow(
      /^the machine is in use: 3 of 4 measurements were disturbed.*--force.*\n {2}up to 50 % program 9\n {2}up to 40 % program 7$/,
    );
  });

  it('counts with --force, and is told all the same', () => {
    const disturbances = new Disturbances({ forced: true, nameOf });
    disturbances.plan(1);
    for (let k = 0; k < 3; k += 1) {
      expect(disturbances.judge(busy)).toMatchObject({
        counts: true,
        disturbed: expect.any(String),
      });
      disturbances.check();
    }
  });
});
