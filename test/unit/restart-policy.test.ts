import { describe, expect, it } from 'vitest';
import type { RestartOptions } from '../../src/options/index.js';
import {
  clusterBudget,
  type FailureHistory,
  isOverBudget,
  NO_FAILURES,
  recordFailure,
  recoveryMs,
  restartDelayMs,
} from '../../src/primary/policies/restart.policy.js';
import { FAILURE_CAUSES, type FailureCause } from '../../src/snapshot/index.js';

const OPTIONS: Required<RestartOptions> = {
  backoffMs: 100,
  backoffFactor: 2,
  maxBackoffMs: 15_000,
  jitterRatio: 0.2,
  stableAfterMs: 30_000,
  maxFailures: 5,
  windowMs: 60_000,
};

/** Backoff alone: no crash loop and no jitter in the way. */
const BACKOFF: Required<RestartOptions> = { ...OPTIONS, jitterRatio: 0, maxFailures: 1_000 };

/** What a slot does after a failure. */
interface RestartDecision {
  readonly delayMs: number;
  readonly degraded: boolean;
}

const decisionOf = (
  history: FailureHistory,
  options: Required<RestartOptions>,
  random: number,
): RestartDecision => ({
  delayMs: restartDelayMs(history, options, random),
  degraded: history.degraded,
});

/** A slot whose workers each live `livedMs`, `times` times in a row, on a clock that starts at 0. */
function failures(
  times: number,
  livedMs: number,
  options = OPTIONS,
  random = 0.5,
  cause: FailureCause = 'crash',
): { decisions: RestartDecision[]; histories: FailureHistory[]; now: number } {
  const decisions: RestartDecision[] = [];
  const histories: FailureHistory[] = [];
  let history = NO_FAILURES;
  let now = 0;
  for (let i = 0; i < times; i += 1) {
    now += livedMs;
    history = recordFailure(history, { cause, livedMs }, now, options);
    const decision = decisionOf(history, options, random);
    histories.push(history);
    decisions.push(decision);
    now += decision.delayMs;
  }
  return { decisions, histories, now };
}

const delays = (decisions: readonly RestartDecision[]) => decisions.map(({ delayMs }) => delayMs);

describe('the wait before a restart', () => {
  it('is none after a stable life', () => {
    expect(delays(failures(1, 30_000).decisions)).toEqual([0]);
    expect(delays(failures(1, 86_400_000).decisions)).toEqual([0]);
  });

  it('is the first backoff after a life that was just not stable', () => {
    expect(delays(failures(1, 29_999).decisions)).toEqual([100]);
    expect(delays(failures(1, 0).decisions)).toEqual([100]);
  });

  it('doubles with each failure in a row, up to the longest', () => {
    expect(delays(failures(11, 0, BACKOFF).decisions)).toEqual([
      100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000, 15_000,
    ]);
  });

  it('grows by the factor that is set, and not at all by a factor of 1', () => {
    expect(delays(failures(3, 0, { ...BACKOFF, backoffFactor: 3 }).decisions)).toEqual([
      100, 300, 900,
    ]);
    expect(delays(failures(3, 0, { ...BACKOFF, backoffFactor: 1 }).decisions)).toEqual([
      100, 100, 100,
    ]);
  });

  it('starts again at the first backoff after a stable life', () => {
    let history = NO_FAILURES;
    const waits = [0, 0, 40_000, 0, 0].map((livedMs, i) => {
      history = recordFailure(history, { cause: 'crash', livedMs }, i * 100_000, BACKOFF);
      return restartDelayMs(history, BACKOFF, 0.5);
    });
    expect(waits).toEqual([100, 200, 0, 100, 200]);
  });

  it.each([
    [0, 80],
    [0.25, 90],
    [0.5, 100],
    [1, 120],
  ])('is spread by the jitter: at random %d it is %d ms', (random, delayMs) => {
    expect(failures(1, 0, OPTIONS, random).decisions[0]!.delayMs).toBeCloseTo(delayMs, 9);
  });

  it('is not spread without jitter', () => {
    const options = { ...OPTIONS, jitterRatio: 0 };
    expect(failures(1, 0, options, 0).decisions).toEqual(failures(1, 0, options, 1).decisions);
  });

  it('is spread also at the longest backoff, so that slots in a loop do not restart together', () => {
    const low = failures(5, 0, OPTIONS, 0).decisions.at(-1)!;
    const high = failures(5, 0, OPTIONS, 0.9999).decisions.at(-1)!;
    expect([low.degraded, high.degraded]).toEqual([true, true]);
    expect(low.delayMs).toBeLessThan(high.delayMs);
    expect(low.delayMs).toBeGreaterThanOrEqual(12_000);
    expect(high.delayMs).toBeLessThanOrEqual(18_000);
  });

  it('is never negative', () => {
    const options = { ...OPTIONS, jitterRatio: 1 };
    for (const { delayMs } of failures(20, 0, options, 0).decisions) {
      expect(delayMs).toBeGreaterThanOrEqual(0);
    }
  });

  it('always fits a timer: with its jitter too it stays below 2 ** 31', () => {
    const longest = 2 ** 31 - 1;
    const options = { ...OPTIONS, backoffMs: longest, maxBackoffMs: longest, jitterRatio: 1 };
    expect(failures(1, 0, options, 0.999).decisions[0]!.delayMs).toBeLessThan(2 ** 31);
    expect(failures(5, 0, options, 0.999).decisions[4]!.delayMs).toBeLessThan(2 ** 31);
  });

  it('is a number however long the row of failures is', () => {
    const long = { ...NO_FAILURES, inARow: 5_000 };
    for (const backoffMs of [0, 1, 15_000]) {
      const delayMs = restartDelayMs(long, { ...BACKOFF, backoffMs }, 0.5);
      expect(delayMs).toBe(backoffMs === 0 ? 0 : 15_000);
    }
  });
});

describe('a crash loop', () => {
  it('begins with the fifth failure within the window, not before', () => {
    const { decisions } = failures(5, 100);
    expect(decisions.map(({ degraded }) => degraded)).toEqual([false, false, false, false, true]);
    expect(decisions[4]!.delayMs).toBe(15_000);
  });

  it('begins with the first failure where one is allowed', () => {
    expect(failures(1, 0, { ...OPTIONS, maxFailures: 1 }).decisions[0]).toEqual({
      delayMs: 15_000,
      degraded: true,
    });
  });

  it('does not count failures that left the window', () => {
    const history = { ...NO_FAILURES, recent: [0, 1, 2, 3] };
    const options = { ...OPTIONS, jitterRatio: 0 };
    const decide = (now: number) =>
      decisionOf(
        recordFailure(history, { cause: 'crash', livedMs: 40_000 }, now, options),
        options,
        0.5,
      );

    expect(decide(59_999)).toEqual({ delayMs: 15_000, degraded: true });
    expect(decide(60_000)).toEqual({ delayMs: 0, degraded: false });
  });

  it('is seen whatever the cadence: also where each life just counts as stable', () => {
    const options = { ...OPTIONS, stableAfterMs: 10_000 };
    const { decisions } = failures(5, 10_500, options);
    expect(decisions.slice(0, 4)).toEqual(Array(4).fill({ delayMs: 0, degraded: false }));
    expect(decisions[4]).toEqual({ delayMs: 15_000, degraded: true });
  });

  it('is seen also where no window ever holds five: one that dies at 31 s each time (C8)', () => {
    const { decisions, histories } = failures(20, 31_000, { ...OPTIONS, jitterRatio: 0 });
    for (const { recent } of histories) expect(recent.length).toBeLessThanOrEqual(2);
    expect(decisions.slice(0, 4)).toEqual(Array(4).fill({ delayMs: 0, degraded: false }));
    expect(decisions.slice(4)).toEqual(Array(16).fill({ delayMs: 15_000, degraded: true }));
  });

  it('is not seen where each life is twice as long as a stable one', () => {
    const { decisions } = failures(50, recoveryMs(OPTIONS));
    expect(decisions).toEqual(Array(50).fill({ delayMs: 0, degraded: false }));
  });

  it('is seen where each life is a little shorter than that', () => {
    expect(failures(5, recoveryMs(OPTIONS) - 1).decisions[4]!.degraded).toBe(true);
  });

  it('counts short lives in a row: one long life among them begins a new row', () => {
    let history = NO_FAILURES;
    let now = 0;
    const livesMs = [31_000, 31_000, 31_000, 31_000, 60_000, 31_000, 31_000, 31_000, 31_000];
    const degraded = livesMs.map((livedMs) => {
      now += livedMs;
      history = recordFailure(history, { cause: 'crash', livedMs }, now, OPTIONS);
      return history.degraded;
    });
    // The long life's own end is the first of the new row.
    expect(degraded).toEqual([...Array(8).fill(false), true]);
  });

  it('is over with the first life that was twice as long as a stable one, not before', () => {
    const loop = failures(5, 0);
    const after = (livedMs: number) =>
      recordFailure(loop.histories[4]!, { cause: 'crash', livedMs }, loop.now + livedMs, OPTIONS);
    expect(after(59_999).degraded).toBe(true);
    expect(after(60_000)).toMatchObject({ degraded: false, inARow: 0, shortLives: 1 });
  });

  it('begins with any failure where the cluster as a whole is over its budget (C7)', () => {
    const failure = { cause: 'crash', livedMs: 0 } as const;
    const history = recordFailure(NO_FAILURES, failure, 0, OPTIONS, true);
    expect(decisionOf(history, OPTIONS, 0.5)).toEqual({ delayMs: 15_000, degraded: true });
    // Also when it is within its budget again: it lasts until a worker lives.
    expect(recordFailure(history, failure, 100_000, OPTIONS).degraded).toBe(true);
  });

  it('lasts as long as every worker dies at once: the slot stays degraded, at the longest wait', () => {
    const { decisions, now } = failures(100, 200, { ...OPTIONS, jitterRatio: 0 });
    const inLoop = decisions.slice(4);
    expect(now).toBeGreaterThan(10 * 60_000);
    expect(inLoop.map(({ degraded }) => degraded)).toEqual(inLoop.map(() => true));
    expect(new Set(delays(inLoop))).toEqual(new Set([15_000]));
  });

  it('lasts also where the longest wait is longer than the window', () => {
    const options = { ...OPTIONS, jitterRatio: 0, maxBackoffMs: 120_000 };
    const { decisions } = failures(30, 0, options);
    expect(new Set(delays(decisions.slice(4)))).toEqual(new Set([120_000]));
  });
});

describe('the history of failures', () => {
  it('holds no more than what the decision needs, however many there were', () => {
    const { histories } = failures(500, 0, { ...OPTIONS, backoffMs: 0, maxBackoffMs: 0 });
    for (const { recent } of histories) expect(recent.length).toBeLessThanOrEqual(5);
    expect(histories.at(-1)!.inARow).toBe(500);
  });

  it('is not changed by the next one: a policy is pure', () => {
    const before: FailureHistory = Object.freeze({
      recent: Object.freeze([1, 2]),
      kills: Object.freeze([3]),
      inARow: 2,
      shortLives: 3,
      degraded: false,
    });
    const unchanged = structuredClone(before);
    const after = recordFailure(before, { cause: 'crash', livedMs: 0 }, 10, OPTIONS);
    restartDelayMs(after, OPTIONS, 0.5);
    recordFailure(before, { cause: 'killed', livedMs: 0 }, 10, OPTIONS);
    expect(before).toEqual(unchanged);
    expect(after).toEqual({
      recent: [1, 2, 10],
      kills: [3],
      inARow: 3,
      shortLives: 4,
      degraded: false,
    });
  });
});

describe('a worker that is killed from outside', () => {
  const killed = (times: number, livedMs = 0) =>
    failures(times, livedMs, { ...OPTIONS, jitterRatio: 0 }, 0.5, 'killed');

  it('is restarted after the first backoff each time, and never makes a crash loop', () => {
    expect(killed(20).decisions).toEqual(Array(20).fill({ delayMs: 100, degraded: false }));
    expect(killed(20).histories.at(-1)!.recent).toEqual([]);
  });

  it('is restarted more and more slowly in a storm of kills, which is no crash loop either', () => {
    const { decisions } = killed(30);
    expect(delays(decisions.slice(18))).toEqual([
      100, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000, 15_000,
    ]);
    expect(decisions.some(({ degraded }) => degraded)).toBe(false);
  });

  it('is restarted as at first once the storm has left the window', () => {
    const { histories, now } = killed(25);
    const failure = { cause: 'killed', livedMs: 0 } as const;
    const history = recordFailure(histories[24]!, failure, now + 60_000, OPTIONS);
    expect(history.kills).toHaveLength(1);
    expect(restartDelayMs(history, OPTIONS, 0.5)).toBe(100);
  });

  it('is forgotten among so many that the longest wait is reached', () => {
    const { histories } = failures(
      1_000,
      0,
      { ...OPTIONS, backoffMs: 0, maxBackoffMs: 0 },
      0.5,
      'killed',
    );
    for (const { kills } of histories) expect(kills.length).toBeLessThanOrEqual(84);
  });

  it('does not lengthen the row of failures, nor that of short lives', () => {
    const { histories, now } = failures(3, 0);
    const failure = { cause: 'killed', livedMs: 0 } as const;
    expect(recordFailure(histories[2]!, failure, now, OPTIONS)).toMatchObject({
      recent: histories[2]!.recent,
      inARow: 1,
      shortLives: 3,
      degraded: false,
    });
  });

  it('is proof of health where it had lived twice as long as a stable one', () => {
    const { histories, now } = failures(5, 0);
    const failure = { cause: 'killed', livedMs: 60_000 } as const;
    expect(recordFailure(histories[4]!, failure, now + 60_000, OPTIONS)).toMatchObject({
      inARow: 0,
      shortLives: 0,
      degraded: false,
    });
  });

  it('is restarted at once after a stable life', () => {
    expect(killed(1, 30_000).decisions).toEqual([{ delayMs: 0, degraded: false }]);
  });

  it('does not end a crash loop that there is', () => {
    const { histories, now } = failures(5, 0);
    const failure = { cause: 'killed', livedMs: 0 } as const;
    const history = recordFailure(histories[4]!, failure, now, OPTIONS);
    expect(decisionOf(history, OPTIONS, 0.5)).toEqual({ delayMs: 15_000, degraded: true });
  });

  it.each(FAILURE_CAUSES.filter((cause) => cause !== 'killed'))(
    'is not one that failed by %s, which does make a crash loop',
    (cause) => {
      expect(failures(5, 0, OPTIONS, 0.5, cause).decisions[4]!.degraded).toBe(true);
    },
  );
});

describe('a worker that could not even be started', () => {
  const failure = { cause: 'boot', livedMs: 0, started: false } as const;
  const fail = (history: FailureHistory, now: number) =>
    recordFailure(history, failure, now, OPTIONS, true);

  it('is tried again more and more slowly, and never makes a crash loop', () => {
    let history = NO_FAILURES;
    const waits = Array.from({ length: 10 }, (_, i) => {
      history = fail(history, i);
      expect(history).toMatchObject({ recent: [], shortLives: 0, degraded: false });
      return restartDelayMs(history, { ...OPTIONS, jitterRatio: 0 }, 0.5);
    });
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000]);
  });

  it('does not end a crash loop that there is, nor its count', () => {
    const { histories, now } = failures(5, 0);
    const before = histories[4]!;
    expect(fail(before, now)).toEqual({ ...before, inARow: before.inARow + 1 });
  });
});

describe('the budget of the whole cluster', () => {
  it.each([
    [1, 5],
    [2, 5],
    [3, 6],
    [8, 16],
    [256, 512],
  ])('is, with %d workers, %d failures within the window (C7)', (workers, budget) => {
    expect(clusterBudget(OPTIONS, workers)).toBe(budget);
  });

  it('is never below what one slot may fail', () => {
    expect(clusterBudget({ ...OPTIONS, maxFailures: 100 }, 8)).toBe(100);
  });
});

describe('the failures of all slots are over the budget', () => {
  it.each([
    [[4], false],
    [[5], true],
    [[3, 1], false],
    [[3, 2], true],
    [[2, 2, 2, 1], false],
    [[2, 2, 2, 2], true],
  ])('as many as all may have together: %j: %s', (failures, over) => {
    expect(isOverBudget(failures, OPTIONS)).toBe(over);
  });

  it.each([[[5, 1]], [[5, 0]], [[5, 5, 5, 1]], [[0, 5, 5, 5, 5, 5, 5, 5]]])(
    'not by the failures of some alone: %j',
    (failures) => {
      expect(isOverBudget(failures, OPTIONS)).toBe(false);
    },
  );
});

describe('slots that fail together after a stable life', () => {
  const delays = (together: number, options = OPTIONS) =>
    [0, 0.5, 0.999].map((random) =>
      Math.round(restartDelayMs(NO_FAILURES, options, random, together)),
    );

  it('restart at once, the first of them', () => {
    expect(delays(0)).toEqual([0, 0, 0]);
  });

  it('restart within one first backoff for each that was before them, up to 1 s', () => {
    expect(delays(1)).toEqual([0, 50, 100]);
    expect(delays(5)).toEqual([0, 250, 500]);
    expect(delays(10)).toEqual([0, 500, 999]);
    expect(delays(255)).toEqual([0, 500, 999]);
  });

  it('restart at once where the backoff is none', () => {
    expect(delays(5, { ...OPTIONS, backoffMs: 0 })).toEqual([0, 0, 0]);
  });

  it('wait never longer than the longest delay', () => {
    expect(delays(5, { ...OPTIONS, maxBackoffMs: 200 })).toEqual([0, 100, 200]);
  });

  it('wait for their own backoff where they have one', () => {
    const history = { ...NO_FAILURES, inARow: 3 };
    expect(restartDelayMs(history, BACKOFF, 0, 5)).toBe(400);
  });
});

describe('the time after which the past is forgotten', () => {
  it('is twice a stable life', () => {
    expect(recoveryMs(OPTIONS)).toBe(60_000);
    expect(recoveryMs({ ...OPTIONS, stableAfterMs: 0 })).toBe(0);
  });
});
