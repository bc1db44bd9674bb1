import { describe, expect, it } from 'vitest';
import {
  type Failure,
  type FailureHistory,
  NO_FAILURES,
  recordFailure,
  RECOVERY_MS,
  restartDelayMs,
} from '../../../../src/decide/policies/restart.policy.js';
import { FAILURE_CAUSES } from '../../../../src/contract/snapshot/index.js';

const FAILED_BOOT: Failure = { cause: 'boot', livedMs: undefined };
const CRASH: Failure = { cause: 'crash', livedMs: 0 };
const KILL: Failure = { cause: 'killed', livedMs: 0 };
const NEVER_STARTED: Failure = { cause: 'boot', livedMs: undefined, started: false };

/** A slot's history of failures after each of these failures. */
function after(failures: readonly Failure[]): FailureHistory[] {
  let history = NO_FAILURES;
  return failures.map((failure) => (history = recordFailure(history, failure)));
}

const times = (count: number, failure: Failure): Failure[] => Array<Failure>(count).fill(failure);
const lives = (...livedMs: number[]): Failure[] =>
  livedMs.map((each) => ({ ...CRASH, livedMs: each }));
const last = (failures: readonly Failure[]) => after(failures).at(-1)!;

const delays = (failures: readonly Failure[], random = 0.5) =>
  after(failures).map((history) => restartDelayMs(history, random));

const degraded = (failures: readonly Failure[]) => after(failures).map((each) => each.degraded);

describe('the wait before a restart', () => {
  it('doubles with each failed boot in a row, up to the longest', () => {
    expect(delays(times(11, FAILED_BOOT))).toEqual([
      100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000, 15_000,
    ]);
  });

  it('grows to 1 s and no further while workers come up before they fail', () => {
    expect(delays(times(8, CRASH))).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000]);
  });

  it('is short again with the first worker that comes up, however many boots had failed', () => {
    expect(delays([...times(9, FAILED_BOOT), CRASH]).slice(-2)).toEqual([15_000, 1_000]);
  });

  it('starts again at the first backoff after a stable life', () => {
    expect(delays(lives(0, 0, 40_000, 0, 0))).toEqual([100, 200, 0, 100, 200]);
  });

  it.each([
    [0, 80],
    [0.25, 90],
    [0.5, 100],
    [1, 120],
  ])('is spread by the jitter: at random %d it is %d ms', (random, delayMs) => {
    expect(delays([CRASH], random)).toEqual([delayMs]);
  });

  it.each([
    ['1 s', CRASH, 800, 1_000],
    ['the longest', FAILED_BOOT, 12_000, 15_000],
  ])('is spread also at %s, so that slots do not restart together', (_, failure, from, to) => {
    const row = times(10, failure);
    expect([0, 0.999].map((random) => delays(row, random).at(-1))).toEqual([from, to]);
  });

  it('is a number however long the row of failures is', () => {
    const long = { ...NO_FAILURES, inARow: 5_000 };
    expect(restartDelayMs(long, 0.5)).toBe(15_000);
  });
});

describe('a crash loop', () => {
  it.each(FAILURE_CAUSES.filter((cause) => cause !== 'killed'))(
    'begins with the fifth failure by %s, not before',
    (cause) => {
      expect(degraded(times(5, { ...CRASH, cause }))).toEqual([false, false, false, false, true]);
    },
  );

  it('is seen whatever the cadence: also of workers that die at 31 s each time', () => {
    expect(degraded(lives(31_000, 31_000, 31_000, 31_000, 31_000)).at(-1)).toBe(true);
    expect(delays(lives(31_000, 31_000, 31_000, 31_000, 31_000))).toEqual([0, 0, 0, 0, 0]);
  });

  it('is not seen where each life is twice as long as a stable one, and is where a little shorter', () => {
    const each = RECOVERY_MS;
    expect(degraded(lives(each, each, each, each, each, each))).not.toContain(true);
    expect(degraded(lives(each, each - 1, each - 1, each - 1, each - 1)).at(-1)).toBe(true);
  });

  it('counts short lives in a row: one long life among them begins a new row', () => {
    const row = lives(31_000, 31_000, 31_000, 31_000, 60_000, 31_000, 31_000, 31_000, 31_000);
    // The long life's own end is the first of the new row.
    expect(degraded(row)).toEqual([...Array<boolean>(8).fill(false), true]);
  });

  it('is over with the first life that was twice as long as a stable one, not before', () => {
    const loop = times(5, CRASH);
    expect(last([...loop, ...lives(59_999)]).degraded).toBe(true);
    expect(last([...loop, ...lives(60_000)])).toMatchObject({ degraded: false, shortLives: 1 });
  });
});

describe('a worker that is killed from outside', () => {
  it('never makes a crash loop, and is restarted at most once a second in a storm of kills', () => {
    expect(degraded(times(30, KILL))).not.toContain(true);
    expect(delays(times(30, KILL)).slice(3)).toEqual([800, ...Array<number>(26).fill(1_000)]);
  });

  it('does not lengthen the row of short lives, nor ends a crash loop that there is', () => {
    expect(last([...times(3, CRASH), KILL])).toMatchObject({ shortLives: 3, degraded: false });
    expect(last([...times(5, CRASH), KILL])).toMatchObject({ degraded: true });
  });

  it('is proof of health where it had lived twice as long as a stable one', () => {
    const killedLate = { ...KILL, livedMs: 60_000 };
    expect(last([...times(5, CRASH), killedLate])).toMatchObject({
      inARow: 0,
      shortLives: 0,
      degraded: false,
    });
  });

  it('is restarted at once after a stable life', () => {
    expect(delays([{ ...KILL, livedMs: 30_000 }])).toEqual([0]);
  });
});

describe('a worker that could not even be started', () => {
  it('is tried again more and more slowly, and never makes a crash loop', () => {
    expect(degraded(times(10, NEVER_STARTED))).not.toContain(true);
    expect(delays(times(10, NEVER_STARTED))).toEqual([
      100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000,
    ]);
  });

  it('does not end a crash loop that there is, nor its count', () => {
    expect(last([...times(5, CRASH), NEVER_STARTED])).toMatchObject({
      shortLives: 5,
      degraded: true,
    });
  });
});

describe('slots that fail together after a stable life', () => {
  const spread = (together: number) =>
    [0, 0.5, 0.999].map((random) => Math.round(restartDelayMs(NO_FAILURES, random, together)));

  it('restart at once, the first of them', () => {
    expect(spread(0)).toEqual([0, 0, 0]);
  });

  it('restart within one first backoff for each that was before them, up to 1 s', () => {
    expect(spread(1)).toEqual([0, 50, 100]);
    expect(spread(5)).toEqual([0, 250, 500]);
    expect(spread(10)).toEqual([0, 500, 999]);
    expect(spread(255)).toEqual([0, 500, 999]);
  });

  it('wait for their own backoff where they have one', () => {
    const history = { ...NO_FAILURES, inARow: 3 };
    expect(restartDelayMs(history, 0.5, 5)).toBe(400);
  });
});
