import { describe, expect, it } from 'vitest';
import { nextSetting, steps } from '../../../../src/tools/tune/ladder.js';
import type { Measurement, Setting } from '../../../../src/tools/tune/run/measurement.js';
import { measured } from '../../support/tune-measurements.js';

const LIMITS = { maxWorkers: 8, maxThreads: 4, threadsAreSet: false };

/** Every setting that is tried where each measures as `measure` says: workers, or workers x threads. */
function tried(
  measure: (setting: Setting) => Measurement,
  limits: Partial<typeof LIMITS> = {},
): string {
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
  it('are one worker more each time while that helps', () => {
    expect(tried(({ workers }) => measured(workers, 100 * workers), { maxWorkers: 4 })).toBe(
      '1 2 3 4',
    );
  });

  it('end where two in a row bring less than 5 % more', () => {
    const rates = [100, 200, 209, 208, 1_000];
    expect(tried(({ workers }) => measured(workers, rates[workers - 1]!))).toBe('1 2 3 4');
  });

  it('go on where one of two brings more: the other was chance', () => {
    const rates = [100, 101, 150, 151, 152, 1_000];
    expect(tried(({ workers }) => measured(workers, rates[workers - 1]!))).toBe('1 2 3 4 5');
  });

  it('go on while p99 gets better', () => {
    const p99Ms = [100, 70, 50, 49, 48, 10];
    expect(tried(({ workers }) => measured(workers, 100, { p99Ms: p99Ms[workers - 1]! }))).toBe(
      '1 2 3 4 5',
    );
  });

  it('end after one more where the event loops have room', () => {
    expect(
      tried(({ workers }) => measured(workers, 100 * workers, { eventLoopUtilization: 0.3 })),
    ).toBe('1 2');
  });

  it('are one alone where no more are wanted', () => {
    expect(tried(({ workers }) => measured(workers, 100), { maxWorkers: 1 })).toBe('1');
  });
});

describe('a route that runs in threads', () => {
  /** As many cores as threads are busy, up to four. */
  const inThreads = ({ workers, threads = 4 }: Setting) =>
    measured(workers, 100 * Math.min(4, workers * threads), {
      threads,
      eventLoopUtilization: 0.1,
    });

  it('is tried with ever more threads, then with workers that share them out', () => {
    expect(tried(inThreads)).toBe('1 1x1 1x2 1x3 2x2 3x2');
  });

  it('is not tried with more threads where these do not help', () => {
    const one = ({ workers, threads = 8 }: Setting) =>
      measured(workers, 100, { threads, eventLoopUtilization: 0.1 });
    expect(tried(one, { maxThreads: 8 })).toBe('1 1x1 1x2 1x3 2x1 3x1');
  });

  it('keeps the threads that somebody has set', () => {
    expect(tried(inThreads, { threadsAreSet: true, maxWorkers: 2 })).toBe('1 2');
  });
});

describe('steps', () => {
  it('grow by one, then by a half, up to what is wanted', () => {
    expect(steps(1)).toEqual([1]);
    expect(steps(8)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(steps(32)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 12, 18, 27, 32]);
  });
});
