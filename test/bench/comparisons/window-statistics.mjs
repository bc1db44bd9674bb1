import { median, quantile } from '../statistics.mjs';

/** A difference is real from here on, where all that is compared agrees on it. */
export const REAL_RATIO = 0.02;

/** What is said of a figure that others' noise can only raise: the least, lower quartile, median. */
export function summaryOf(values) {
  return {
    least: quantile(values, 0),
    quartile: quantile(values, 0.25),
    median: quantile(values, 0.5),
  };
}

/**
 * Each window over its neighbour of the baseline: the nearest of the same start. Of two that are as
 * near, their mean. A window without one is left out.
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
 * By how much a system differs from the baseline. Minimum, lower quartile and median of the two, and
 * the median of the neighbours' ratios, must agree, and each start must point the same way. Of two
 * systems that are the same, in windows that scatter by a quarter, the first rule alone finds one in
 * five different; both find one in ten (18 windows of 3 starts), or one in thirty (30 of 5).
 *
 * @param ratios of the neighbours, each with its start.
 * @returns the smallest of these differences, such as 0.08 or -0.04; 0 where they do not agree,
 *   undefined where there are not two starts to compare.
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
