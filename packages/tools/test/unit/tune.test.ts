import { describe, expect, it } from 'vitest';
import { addHeader } from '../../src/arguments.js';
import {
  type Measurement,
  measurementOf,
  nextWorkers,
  recommend,
} from '../../src/tune/recommendation.js';

/** A measurement of busy event loops. */
function measured(
  workers: number,
  requestsPerSecond: number,
  given: Partial<Measurement> = {},
): Measurement {
  return {
    workers,
    requestsPerSecond,
    p50Ms: 10,
    p99Ms: 20,
    failed: 0,
    memoryBytes: workers * 100e6,
    eventLoopUtilization: 1,
    generatorUtilization: 0.2,
    spreadRatio: 0.01,
    ...given,
  };
}

describe('the numbers of workers that are tried', () => {
  const tried = (rates: readonly number[], max: number): number[] => {
    const measurements: Measurement[] = [];
    for (;;) {
      const workers = nextWorkers(measurements, max);
      if (workers === undefined) return measurements.map((each) => each.workers);
      measurements.push(measured(workers, rates[measurements.length]!));
    }
  };

  it.each([
    { rates: [100, 200, 300, 400], max: 4, expected: [1, 2, 3, 4] },
    // Two in a row bring less than 5 % more.
    { rates: [100, 200, 209, 208, 1_000], max: 8, expected: [1, 2, 3, 4] },
    // One of two brings more, so the other was chance.
    { rates: [100, 101, 150, 151, 152, 1_000], max: 8, expected: [1, 2, 3, 4, 5] },
    // By one, then by a half.
    {
      rates: Array.from({ length: 12 }, (_, n) => 2 ** n),
      max: 32,
      expected: [1, 2, 3, 4, 5, 6, 7, 8, 12, 18, 27, 32],
    },
  ])('grow while that helps: $rates', ({ rates, max, expected }) => {
    expect(tried(rates, max)).toEqual(expected);
  });
});

describe('the recommendation', () => {
  it.each([
    ['the most throughput', [measured(1, 100), measured(2, 195)], 2],
    ['the fewest workers within 5 %', [measured(1, 100), measured(2, 195), measured(3, 199)], 2],
    [
      'no gain within the spread of rounds',
      [measured(1, 100), measured(2, 120, { spreadRatio: 0.25 })],
      1,
    ],
    ['no number whose requests failed', [measured(1, 100), measured(2, 300, { failed: 5 })], 1],
  ])('has %s', (_, measurements, workers) => {
    expect(recommend(measurements)!.workers).toBe(workers);
  });

  it('gives its reason', () => {
    expect(recommend([measured(1, 100), measured(2, 195), measured(3, 199)])!.reason).toBe(
      '2 workers answered 195.0 requests/s, 1.95 times as many as 1 worker, and 3 workers 2.1 % more, within the margin of 5.0 %.',
    );
  });

  it('is none if all requests failed', () => {
    expect(recommend([measured(1, 100, { failed: 1 })])).toBeUndefined();
  });

  it.each([
    [{ spreadRatio: 0.3 }, 'differ by 30 %'],
    [{ generatorUtilization: 0.97 }, 'load generator was the bottleneck with 2 workers'],
    [{ eventLoopUtilization: 0.4 }, 'busy at most 40 % of the time'],
    [{ failed: 1 }, 'excluded 2 workers, because requests failed'],
    [{}, ''],
  ])('has notes: %j', (given, says) => {
    const { notes } = recommend([measured(2, 200, given), measured(3, 201)])!;
    expect(notes.join()).toEqual(says === '' ? '' : expect.stringContaining(says));
  });
});

it('a measurement is the run with the median throughput, with the failures of all runs', () => {
  const runs = [100, 80, 120].map((rate, index) =>
    measured(1, rate, { failed: index, p99Ms: rate }),
  );

  expect(measurementOf(runs)).toMatchObject({
    requestsPerSecond: 100,
    p99Ms: 100,
    spreadRatio: 0.2,
    failed: 3,
  });
});

it('a header has a name, a value and no line break', () => {
  expect(addHeader('X-Key: a: b', { accept: '*/*' })).toEqual({ accept: '*/*', 'x-key': 'a: b' });
  for (const text of ['X-Key', ': a', 'X Key: a', 'X-Key: a\r\nX-More: b']) {
    expect(() => addHeader(text)).toThrow('expected a header');
  }
});
