import { describe, expect, it } from 'vitest';
import { differenceOf, neighbourRatios } from '../bench/comparisons/window-statistics.mjs';
import { mediansOf } from '../bench/comparisons/rows.mjs';
import { BusyMachineError, Disturbances, othersBetween } from '../bench/machine-use.mjs';
import { ahead } from '../bench/report/pages.mjs';
import { tablesOf } from '../bench/report/tables.mjs';

describe('a table of the report', () => {
  const rows = [
    { group: '', system: 'pm2', label: 'pm2', p99Ms: 30, rounds: [{ p99Ms: 20 }, { p99Ms: 40 }] },
    { group: '', system: 'nginx', label: 'nginx', notRun: 'nginx is missing' },
    { group: '', system: 'nestjs-cluster', label: 'nestjs-cluster', ours: true, p99Ms: 10 },
  ];

  it('compares what the scope is about, and has the spread of the rounds', () => {
    expect(tablesOf({ rows, metric: 'p99Ms' })[0]!.split('\n')).toEqual([
      '|  | p99, ms | × nestjs-cluster |',
      '| :- | -: | -: |',
      '| pm2 | 30.0 (20.0–40.0) | 3.00 |',
      '| nginx, not run: nginx is missing |  |  |',
      '| nestjs-cluster | 10.0 | 1.00 |',
    ]);
  });

  it('names a system as ahead only by 3 %, and in CPU only by a difference of windows', () => {
    const result = (scope: string, metrics: Record<string, object>) => ({
      scope,
      machine: {},
      rows: Object.entries(metrics).map(([system, values]) => ({
        group: 'Express',
        system,
        label: system,
        ours: system === 'nestjs-cluster',
        ...values,
      })),
    });
    const list = ahead([
      result('keep-alive', {
        'nestjs-cluster': { cpuMicros: 100, isBaseline: true },
        pm2: { cpuMicros: 80, difference: -0.15 },
        watt: { cpuMicros: 80, difference: 0 },
      }),
      result('mixed', {
        'nestjs-cluster': { lightP99Ms: 100 },
        nginx: { lightP99Ms: 96 },
        pm2: { lightP99Ms: 98 },
      }),
    ]);
    expect(list.split('\n')).toEqual([
      '- **nginx**: light route under heavy load 4 %.',
      '- **pm2**: keep-alive CPU 20 %.',
    ]);
  });
});

/** Windows of a start, by place. */
function windows(start: number, micros: Record<number, number>) {
  return Object.entries(micros).map(([place, cpuMicros]) => ({
    start,
    place: Number(place),
    cpuMicros,
  }));
}

describe('a comparison by windows', () => {
  it('takes the nearest window of the baseline in the same start, so a drift cancels out', () => {
    const baseline = [...windows(1, { 2: 20, 5: 40, 8: 60 }), ...windows(2, { 9: 10 })];
    const ratios = neighbourRatios(windows(1, { 1: 22, 4: 44, 9: 66 }), baseline, 2);
    expect(ratios.map(({ ratio }: { ratio: number }) => ratio.toFixed(3))).toEqual([
      '1.100',
      '1.100',
      '1.100',
    ]);
    expect(neighbourRatios(windows(2, { 1: 10 }), baseline, 4)).toEqual([]);
  });

  it('finds a difference only if minimum, quartile, median, neighbours and all starts agree', () => {
    const baseline = { least: 20, quartile: 22, median: 24 };
    const own = { least: 22, quartile: 23.76, median: 28.8 }; // 1.1, 1.08 and 1.2 times
    const ratios = (...each: number[]) => each.map((ratio, i) => ({ start: i + 1, ratio }));
    expect(differenceOf(own, baseline, ratios(1.11, 1.12))).toBeCloseTo(0.08);
    expect(differenceOf({ ...own, least: 19 }, baseline, ratios(1.11, 1.12))).toBe(0);
    expect(differenceOf({ ...own, median: 24.1 }, baseline, ratios(1.11, 1.12))).toBe(0);
    expect(differenceOf(own, baseline, ratios(1.11, 0.9))).toBe(0);
    expect(differenceOf(own, baseline, ratios(1.11))).toBeUndefined();
  });

  it('takes the median of rounds, the sum of losses, and the most of one event', () => {
    const rounds = [
      { asked: 100, lost: 0, lostMost: 0, reloadMs: 3 },
      { asked: 120, lost: 4, lostMost: 3, reloadMs: 9 },
      { asked: 110, lost: 0, lostMost: 0, reloadMs: 4 },
    ];
    expect(mediansOf(rounds)).toEqual({ asked: 330, lost: 4, lostMost: 3, reloadMs: 4 });
  });
});

describe('what else uses the machine', () => {
  const busy = (share: number) => ({ others: { share, top: [{ pid: 7, share }] } });

  it('discards a measurement, and refuses a result of which a quarter is discarded', () => {
    const disturbances = new Disturbances({ nameOf: (pid: number) => `someone (pid ${pid})` });
    disturbances.plan(4);
    expect(disturbances.judge(busy(0.02))).toEqual({ counts: true });
    expect(disturbances.judge(busy(0.2)).counts).toBe(false);
    disturbances.check();
    disturbances.judge(busy(0.2));
    expect(() => disturbances.check()).toThrow(BusyMachineError);
    expect(() => disturbances.check()).toThrow('up to 20 % someone (pid 7)');
  });

  it('is every process that is no descendant of the benchmark', () => {
    const process = (parent: number, ticks: number) => ({ parent, ticks, kernel: false });
    const reading = (ours: number, others: number) => ({
      work: ours + others,
      stolen: 0,
      processes: new Map([
        [10, process(1, 0)],
        [11, process(10, ours)],
        [20, process(1, others)],
      ]),
    });
    const { share, top } = othersBetween(reading(0, 0), reading(50, 20), [10], 100);
    expect(share).toBeCloseTo(0.2);
    expect(top.map(({ pid }) => pid)).toEqual([20]);
  });
});
