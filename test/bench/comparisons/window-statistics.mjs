import { median, quantile } from '../statistics.mjs';

/** A difference is real from here on, where all that is compared agrees on it. */
export const REAL_RATIO = 0.02;

/** Least value, lower quartile and median of a figure that noise can only raise. */
export function summaryOf(values) {
  return {
    least: quantile(values, 0),
    quartile: quantile(values, 0.25),
    median: quantile(values, 0.5),
  };
}

/**
 * The ratio of each window to its neighbour: the nearest window of the baseline in the same start.
 * If two windows are equally near, the neighbour is their mean. A window without a neighbour is
 * left out.
 *
 * @param windows of one system: `start`, `place` in the order of that start, `cpuMicros`.
 * @param reach how many places away a neighbour may be.
 */
export function neighbourRatios(windows, baseline, reach) {
  return windows.flatMap(({ start, place, cpuMicros }) => {
    const near = baseline
      .filter((other) => other.start === start && Math.abs(other.place - place) <= reach)
      .map((other) => ({ distance: Math.abs(other.place - place), micros: other.cpuMicros }));
    if (near.length === 0) return [];
    const distance = Math.min(...near.map((other) => other.distance));
    const nearest = near.filter((other) => other.distance === distance);
    const micros = nearest.reduce((sum, other) => sum + other.micros, 0) / nearest.length;
    return [{ start, ratio: cpuMicros / micros }];
  });
}

/**
 * By how much a system differs from the baseline. First, the differences of minimum, lower quartile
 * and median, and the median of the neighbours' ratios, must agree in direction. Second, each start
 * must point the same way. If windows scatter by a quarter, the first rule alone reports a
 * difference between identical systems in one comparison of five. Both rules together do so in one
 * of ten (18 windows of 3 starts) or one of thirty (30 windows of 5 starts).
 *
 * @param ratios result of `neighbourRatios()`.
 * @returns the smallest of these differences, such as 0.08 or -0.04; 0 if they do not agree,
 *   undefined if there are fewer than two starts to compare.
 */
export function differenceOf(own, baseline, ratios) {
  const starts = [...new Set(ratios.map(({ start }) => start))];
  if (starts.length < 2) return undefined;
  const differences = [
    own.least / baseline.least - 1,
    own.quartile / baseline.quartile - 1,
    own.median / baseline.median - 1,
    medianRatio(ratios) - 1,
  ];
  const directions = starts.map((start) =>
    Math.sign(medianRatio(ratios.filter((each) => each.start === start)) - 1),
  );
  const direction = directions[0];
  const agree =
    directions.every((each) => each === direction) &&
    differences.every((difference) => difference * direction > REAL_RATIO);
  return agree ? direction * Math.min(...differences.map(Math.abs)) : 0;
}

function medianRatio(ratios) {
  return median(ratios.map(({ ratio }) => ratio));
}

/**
 * The metrics of a row: of its own windows, and against the baseline where that was measured.
 *
 * @param baseline windows of the baseline; the same array where the row is the baseline.
 * @returns {Record<string, any>}
 */
export function comparedMetrics(windows, baseline, reach) {
  const own = summaryOf(windows.map(({ cpuMicros }) => cpuMicros));
  const metrics = {
    cpuMicros: own.median,
    cpuMicrosQuartile: own.quartile,
    cpuMicrosLeast: own.least,
  };
  if (windows === baseline) {
    return { ...metrics, isBaseline: true, cpuRatio: 1, cpuRatioOfLeast: 1 };
  }
  const ratios = neighbourRatios(windows, baseline ?? [], reach);
  if (ratios.length === 0) return metrics;
  const ratio = summaryOf(ratios.map((each) => each.ratio));
  const other = summaryOf(baseline.map(({ cpuMicros }) => cpuMicros));
  return {
    ...metrics,
    cpuRatio: ratio.median,
    cpuRatioQuartile: ratio.quartile,
    cpuRatioLeast: ratio.least,
    cpuRatioOfLeast: own.least / other.least,
    difference: differenceOf(own, other, ratios),
  };
}
