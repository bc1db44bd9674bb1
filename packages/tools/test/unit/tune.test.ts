import { describe, expect, it } from 'vitest';
import { addHeader, routeUrl } from '../../src/arguments.js';
import { sumOf } from '../../src/endpoints.js';
import { nextSetting, steps } from '../../src/tune/ladder.js';
import { type Measurement, measurementOf, type Setting } from '../../src/tune/measurement.js';
import { environmentOf, recommend } from '../../src/tune/recommendation.js';

/** A measurement of busy event loops. */
function measured(
  workers: number,
  requestsPerSecond: number,
  given: Partial<Measurement> = {},
): Measurement {
  return {
    setting: { workers, threads: given.threads },
    requestsPerSecond,
    p50Ms: 10,
    p99Ms: 20,
    failed: 0,
    busyCores: workers,
    memoryBytes: workers * 100e6,
    threads: undefined,
    eventLoopUtilization: 1,
    generatorUtilization: 0.2,
    spreadRatio: 0.01,
    ...given,
  };
}

const LIMITS = { maxWorkers: 8, maxThreads: 4, threadsAreSet: false };

/** All settings that are tried, as workers or as workers x threads. */
function tried(measure: (setting: Setting) => Measurement, limits: Partial<typeof LIMITS> = {}) {
  const measurements: Measurement[] = [];
  for (;;) {
    const setting = nextSetting(measurements, { ...LIMITS, ...limits });
    if (setting === undefined) break;
    if (measurements.length > 50) throw new Error('it never ends');
    measurements.push({ ...measure(setting), setting });
  }
  return measurements
    .map(({ setting: { workers, threads } }) => [workers, threads].filter(Boolean).join('x'))
    .join(' ');
}

describe('the settings that are tried', () => {
  it.each([
    { rates: [100, 200, 300, 400], maxWorkers: 4, expected: '1 2 3 4' },
    // Two in a row bring less than 5 % more.
    { rates: [100, 200, 209, 208, 1_000], maxWorkers: 8, expected: '1 2 3 4' },
    // One of two brings more, so the other was chance.
    { rates: [100, 101, 150, 151, 152, 1_000], maxWorkers: 8, expected: '1 2 3 4 5' },
  ])('add workers while that helps: $rates', ({ rates, maxWorkers, expected }) => {
    expect(tried(({ workers }) => measured(workers, rates[workers - 1]!), { maxWorkers })).toBe(
      expected,
    );
  });

  it('go on while p99 gets better', () => {
    const p99Ms = [100, 70, 50, 49, 48, 10];
    expect(tried(({ workers }) => measured(workers, 100, { p99Ms: p99Ms[workers - 1]! }))).toBe(
      '1 2 3 4 5',
    );
  });

  it('end after one more if the event loops are idle', () => {
    expect(
      tried(({ workers }) => measured(workers, 100 * workers, { eventLoopUtilization: 0.3 })),
    ).toBe('1 2');
  });

  it('add threads first, then workers that share them, if the route runs in threads', () => {
    const inThreads = ({ workers, threads = 4 }: Setting) =>
      measured(workers, 100 * Math.min(4, workers * threads), { threads });

    expect(tried(inThreads)).toBe('1 1x1 1x2 1x3 2x2 3x2');
    expect(tried(inThreads, { threadsAreSet: true, maxWorkers: 2 })).toBe('1 2');
  });

  it('grow by one, then by a half', () => {
    expect(steps(32)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 12, 18, 27, 32]);
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
    [
      'one worker for a route that waits',
      [measured(1, 100, { eventLoopUtilization: 0.3 }), measured(2, 130)],
      1,
    ],
    ['no setting whose requests failed', [measured(1, 100), measured(2, 300, { failed: 5 })], 1],
  ])('has %s', (_, measurements, workers) => {
    expect(recommend(measurements)!.setting.workers).toBe(workers);
  });

  it('gives its reason', () => {
    expect(recommend([measured(1, 100), measured(2, 195), measured(3, 199)])!.reason).toBe(
      '2 workers answered 195 requests a second, 1.95 times as many as 1 worker; 3 workers answered 2.1 % more, which is within the 5.0 % of chance.',
    );
  });

  it('has threads if the route runs in them', () => {
    const { setting, reason } = recommend([
      measured(1, 100, { threads: 1 }),
      measured(1, 190, { threads: 2 }),
      measured(2, 192, { threads: 1 }),
    ])!;

    expect(environmentOf(setting)).toEqual({ CLUSTER_WORKERS: '1', CLUSTER_THREADS: '2' });
    expect(reason).toContain('1 worker with 2 threads answered');
  });

  it('is none if all requests failed', () => {
    expect(recommend([measured(1, 100, { failed: 1 })])).toBeUndefined();
  });

  it.each([
    [{ spreadRatio: 0.3 }, 'differ by 30 %'],
    [{ generatorUtilization: 0.97 }, 'load generator was the limit with 1 worker'],
    [{ busyCores: undefined }, '--metrics-path'],
    [{ failed: 1 }, 'requests failed with 1 worker'],
    [{}, ''],
  ])('has its doubts: %j', (given, says) => {
    const { caveats } = recommend([measured(1, 100, given), measured(2, 200)])!;
    expect(caveats.join()).toEqual(says === '' ? '' : expect.stringContaining(says));
  });
});

it('a measurement is the median of its runs, with all failures', () => {
  const runs = [100, 80, 120].map((rate, index) => measured(1, rate, { failed: index }));

  expect(measurementOf({ workers: 1 }, runs)).toMatchObject({
    requestsPerSecond: 100,
    spreadRatio: 0.2,
    failed: 3,
  });
});

it('the sum of a metric has all its labels, and no metric with a longer name', () => {
  const page = 'cpu_seconds{worker="0"} 1.5\ncpu_seconds{worker="}1"} 2\ncpu_seconds_total 7';

  expect(sumOf(page, 'cpu_seconds')).toBe(3.5);
  expect(sumOf(page, 'cpu')).toBeUndefined();
});

it('a route is a path of the default address, or a URL', () => {
  expect(routeUrl('/fib/30?x=1')).toBe('http://127.0.0.1:3000/fib/30?x=1');
  expect(routeUrl('http://127.0.0.1:8080/fib/30')).toBe('http://127.0.0.1:8080/fib/30');
});

it('a header has a name, a value and no line break', () => {
  expect(addHeader('X-Key: a: b', { accept: '*/*' })).toEqual({ accept: '*/*', 'x-key': 'a: b' });
  for (const text of ['X-Key', ': a', 'X Key: a', 'X-Key: a\r\nX-More: b']) {
    expect(() => addHeader(text)).toThrow('expected a header');
  }
});
