import { describe, expect, it } from 'vitest';
import { environmentOf, recommend } from '../../../../src/tools/tune/recommendation.js';
import { measured } from '../../support/tune-measurements.js';

/** How many workers are recommended. */
const workersOf = (...measurements: ReturnType<typeof measured>[]) =>
  recommend(measurements)!.setting.workers;

describe('the recommendation', () => {
  it('is the number that answers most, where that is clearly more', () => {
    const { setting, reason } = recommend([measured(1, 100), measured(2, 195)])!;

    expect(setting.workers).toBe(2);
    expect(reason).toBe(
      '2 workers answered 195 requests a second, 1.95 times as many as 1 worker; more were not tried, and each worker takes about 100 MB.',
    );
  });

  it('is the smaller number, where more brings less than 5 %', () => {
    const { setting, reason } = recommend([
      measured(1, 100),
      measured(2, 195),
      measured(3, 199),
      measured(4, 190),
    ])!;

    expect(setting.workers).toBe(2);
    expect(reason).toContain(
      '; 3 workers answered 2 % more, which is within the 5 % of chance, for 100 MB more memory.',
    );
  });

  it('does not lose what many small gains add up to', () => {
    const rates = [100, 104, 108, 112];

    expect(workersOf(...rates.map((rate, index) => measured(index + 1, rate)))).toBe(3);
  });

  it('takes for chance what rounds of one setting differ by', () => {
    expect(workersOf(measured(1, 100), measured(2, 120, { spreadRatio: 0.25 }))).toBe(1);
    expect(workersOf(measured(1, 100), measured(2, 120, { spreadRatio: 0.15 }))).toBe(2);
  });

  it('is one worker for a route that waits, whatever chance adds', () => {
    const { setting, reason } = recommend([
      measured(1, 100, { eventLoopUtilization: 0.3 }),
      measured(2, 130, { eventLoopUtilization: 0.15 }),
    ])!;

    expect(setting.workers).toBe(1);
    expect(reason).toContain('busy for no more than 30 % of the time');
  });

  it('names threads where the route runs in them', () => {
    const { setting, reason } = recommend([
      measured(1, 100, { threads: 1, eventLoopUtilization: 0.1 }),
      measured(1, 190, { threads: 2, eventLoopUtilization: 0.1 }),
      measured(2, 192, { threads: 1, eventLoopUtilization: 0.1 }),
    ])!;

    expect(environmentOf(setting)).toEqual({ CLUSTER_WORKERS: '1', CLUSTER_THREADS: '2' });
    expect(reason).toContain('1 worker with 2 threads answered');
    expect(reason).toContain('2 workers with 1 thread each');
  });

  it('is none where requests failed, unless they failed everywhere', () => {
    const failing = measured(2, 300, { failed: 5 });

    const { setting, caveats } = recommend([measured(1, 100), failing])!;
    expect(setting.workers).toBe(1);
    expect(caveats.join()).toContain('requests failed with 2 workers');
    expect(recommend([failing])).toBeUndefined();
  });
});

describe('its caveats', () => {
  const caveats = (...measurements: ReturnType<typeof measured>[]) =>
    recommend(measurements)!.caveats.join('\n');

  it('are none where there are none', () => {
    expect(caveats(measured(1, 100), measured(2, 200))).toBe('');
  });

  it.each([
    { given: { spreadRatio: 0.3 }, says: 'differ by 30 %' },
    { given: { generatorUtilization: 0.97 }, says: 'load generator was the limit with 1 worker' },
    { given: { coresOfOthers: 1.2 }, says: 'other programs took up to 1.2 cores' },
    { given: { busyCores: undefined }, says: '--metrics-path' },
  ])('say where something is to be thought of: $says', ({ given, says }) => {
    expect(caveats(measured(1, 100, given), measured(2, 200))).toContain(says);
  });

  it('say what more workers do for p99 alone', () => {
    expect(caveats(measured(1, 100, { p99Ms: 80 }), measured(2, 101, { p99Ms: 20 }))).toContain(
      'with 2 workers p99 was 20.0 ms instead of 80.0 ms',
    );
  });
});
