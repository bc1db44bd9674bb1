import { describe, expect, it } from 'vitest';
import {
  comparedMetrics,
  differenceOf,
  neighbourRatios,
  summaryOf,
} from '../bench/comparisons/window-statistics.mjs';
import { mediansOf } from '../bench/comparisons/rows.mjs';
import { median, quantile } from '../bench/statistics.mjs';

/** Windows of a start, by place. */
function windows(start: number, micros: Record<number, number>) {
  return Object.entries(micros).map(([place, cpuMicros]) => ({
    start,
    place: Number(place),
    cpuMicros,
  }));
}

describe('statistics of windows', () => {
  it('are the least, the lower quartile and the median, between two values in proportion', () => {
    expect(summaryOf([26, 22, 24, 23, 25])).toEqual({ least: 22, quartile: 23, median: 24 });
    expect(summaryOf([10, 20])).toEqual({ least: 10, quartile: 12.5, median: 15 });
    expect(summaryOf([7])).toEqual({ least: 7, quartile: 7, median: 7 });
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(quantile([1, 2, 3, 4, 5], 0.75)).toBe(4);
  });
});

describe('the neighbour of a window', () => {
  it('is the nearest window of the baseline, so that a drift of the machine cancels out', () => {
    // The machine becomes three times as slow; the system costs 10 % more throughout.
    const baseline = windows(1, { 2: 20, 5: 40, 8: 60 });
    const own = windows(1, { 1: 22, 4: 44, 9: 66 });
    for (const { ratio } of neighbourRatios(own, baseline, 2)) expect(ratio).toBeCloseTo(1.1);
    expect(neighbourRatios(own, baseline, 2)).toHaveLength(3);
  });

  it('is the mean of two that are as near', () => {
    expect(neighbourRatios(windows(1, { 2: 30 }), windows(1, { 1: 10, 3: 20 }), 1)).toEqual([
      { start: 1, ratio: 2 },
    ]);
  });

  it('is not in another start, nor far away: then the window has none', () => {
    const baseline = [...windows(1, { 1: 10 }), ...windows(2, { 9: 10 })];
    expect(neighbourRatios(windows(2, { 1: 10 }), baseline, 4)).toEqual([]);
    expect(neighbourRatios(windows(2, { 5: 10 }), baseline, 4)).toEqual([{ start: 2, ratio: 1 }]);
  });
});

describe('a difference', () => {
  const baseline = { least: 20, quartile: 22, median: 24 };
  const times = (least: number, quartile: number, middle: number) => ({
    least: 20 * least,
    quartile: 22 * quartile,
    median: 24 * middle,
  });

  /** One of each start. */
  const ratiosOf = (...each: number[]) => each.map((ratio, i) => ({ start: i + 1, ratio }));

  it('is the smallest of those that minimum, quartile, median and neighbours agree on', () => {
    expect(differenceOf(times(1.1, 1.08, 1.2), baseline, ratiosOf(1.11, 1.12, 1.13))).toBeCloseTo(
      0.08,
    );
    expect(differenceOf(times(0.9, 0.92, 0.8), baseline, ratiosOf(0.97, 0.95, 0.96))).toBeCloseTo(
      -0.04,
    );
  });

  it.each([
    ['the minimum', times(0.9, 1.1, 1.1), 1.1],
    ['the quartile', times(1.1, 0.9, 1.1), 1.1],
    ['the median', times(1.1, 1.1, 0.9), 1.1],
    ['the neighbours', times(1.1, 1.1, 1.1), 0.9],
  ])('is none where %s says otherwise', (_, own, ratio) => {
    expect(differenceOf(own, baseline, ratiosOf(ratio, ratio))).toBe(0);
  });

  it('is none where one of them is within 2 %', () => {
    expect(differenceOf(times(1.1, 1.1, 1.1), baseline, ratiosOf(1.019, 1.019))).toBe(0);
    expect(differenceOf(times(0.9, 0.981, 0.9), baseline, ratiosOf(0.9, 0.9))).toBe(0);
    expect(differenceOf(times(1.1, 1.1, 1.1), baseline, ratiosOf(1.021, 1.021))).toBeCloseTo(0.021);
  });
});

describe('a difference of starts', () => {
  const own = { least: 22, quartile: 22, median: 22 };
  const baseline = { least: 20, quartile: 20, median: 20 };
  const from = (start: number, ...ratios: number[]) => ratios.map((ratio) => ({ start, ratio }));

  it('is none where one start points the other way', () => {
    const clear = [...from(1, 1.2, 1.1, 1.3), ...from(2, 1.2, 1.1, 1.2)];
    expect(differenceOf(own, baseline, [...clear, ...from(3, 0.9, 1.2, 1.1)])).toBeCloseTo(0.1);
    expect(differenceOf(own, baseline, [...clear, ...from(3, 0.9, 1.2, 0.99)])).toBe(0);
  });

  it('is unknown after a single start', () => {
    expect(differenceOf(own, baseline, from(1, 1.1, 1.1))).toBeUndefined();
  });
});

describe('the metrics of a row', () => {
  const baseline = [...windows(1, { 2: 20 }), ...windows(2, { 2: 24 })];

  it('compare it with the baseline', () => {
    const metrics = comparedMetrics(
      [...windows(1, { 1: 22 }), ...windows(2, { 3: 26.4 })],
      baseline,
      2,
    );
    expect(metrics).toMatchObject({ cpuMicrosLeast: 22, cpuMicrosQuartile: 23.1 });
    expect(metrics.cpuMicros).toBeCloseTo(24.2);
    for (const key of ['cpuRatio', 'cpuRatioQuartile', 'cpuRatioLeast', 'cpuRatioOfLeast'] as const)
      expect(metrics[key]).toBeCloseTo(1.1);
    expect(metrics.difference).toBeCloseTo(0.1);
  });

  it('say of the baseline that it is one, and compare nothing where there is none', () => {
    expect(comparedMetrics(baseline, baseline, 2)).toMatchObject({ isBaseline: true, cpuRatio: 1 });
    expect(comparedMetrics(baseline, undefined, 2)).toEqual({
      cpuMicros: 22,
      cpuMicrosQuartile: 21,
      cpuMicrosLeast: 20,
    });
  });
});

describe('the rounds of a row', () => {
  it('are a median of what was measured, a sum of what was sent and lost, and the most of one event', () => {
    const rounds = [
      { asked: 100, lost: 0, lostMost: 0, reloadMs: 3 },
      { asked: 120, lost: 0, lostMost: 0, reloadMs: 9 },
      { asked: 110, lost: 4, lostMost: 3, reloadMs: 4 },
    ];
    expect(mediansOf(rounds)).toEqual({ asked: 330, lost: 4, lostMost: 3, reloadMs: 4 });
  });
});
