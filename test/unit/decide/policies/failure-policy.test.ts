import { describe, expect, it } from 'vitest';
import { FAILURE_CAUSES } from '../../../../src/contract/snapshot/types.js';
import {
  type Circumstances,
  classifyFailure,
  describeExit,
  type Failure,
  type FailureHistory,
  NO_FAILURES,
  type ProcessExit,
  recordFailure,
  restartDelayMs,
} from '../../../../src/decide/policies/failure.policy.js';

const code = (value: number | null): ProcessExit => ({ code: value, signal: null });
const signal = (value: NodeJS.Signals): ProcessExit => ({ code: null, signal: value });

const causeOf = (exit: ProcessExit, known: Partial<Circumstances> = {}) =>
  classifyFailure(exit, { state: 'ready', oomKill: false, explained: false, ...known });

it.each([
  ['exit', [code(0)]],
  ['crash', [1, 13, 133, 137, 255].map(code)],
  ['crash', (['SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGSYS', 'SIGTRAP'] as const).map(signal)],
  ['killed', (['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGXCPU'] as const).map(signal)],
] as const)('a worker that was ready failed by %s where it ended by one of %j', (cause, exits) => {
  for (const exit of exits) {
    expect(causeOf(exit)).toBe(cause);
    expect(causeOf(exit, { explained: true })).toBe(cause);
  }
});

it.each([code(0), code(1), code(null), signal('SIGKILL'), signal('SIGSEGV')])(
  'a worker that was starting failed to boot, however it ended: %j',
  (exit) => {
    expect(causeOf(exit, { state: 'starting' })).toBe('boot');
  },
);

describe('a worker ran out of memory', () => {
  it.each([
    ['ready', 'crash'],
    ['starting', 'boot'],
  ] as const)(
    'while %s where it aborted and had said nothing; else that is a %s',
    (state, cause) => {
      for (const exit of [signal('SIGABRT'), code(134)]) {
        expect(causeOf(exit, { state })).toBe('oom');
        expect(causeOf(exit, { state, explained: true })).toBe(cause);
      }
      // The kernel has killed for want of memory.
      for (const explained of [false, true]) {
        expect(causeOf(signal('SIGKILL'), { state, oomKill: true, explained })).toBe('oom');
      }
    },
  );

  it.each([
    [signal('SIGTERM'), 'killed'],
    [signal('SIGSEGV'), 'crash'],
    [code(0), 'exit'],
    [code(1), 'crash'],
    [code(137), 'crash'],
  ] as const)('not where the kernel killed another: %j is %s', (exit, cause) => {
    expect(causeOf(exit, { oomKill: true })).toBe(cause);
  });
});

describe('an exit in words', () => {
  it.each([
    [code(0), 'exit', /^exited with code 0$/],
    [code(7), 'crash', /^exited with code 7$/],
    [code(134), 'crash', /^exited with code 134$/],
    [code(null), 'boot', /^the process could not be started$/],
    [signal('SIGSEGV'), 'crash', /^killed by SIGSEGV$/],
    [signal('SIGTERM'), 'killed', /^killed by SIGTERM$/],
    [signal('SIGABRT'), 'crash', /^aborted by SIGABRT$/],
    [signal('SIGKILL'), 'killed', /SIGKILL.*out-of-memory.*dmesg/],
    [signal('SIGABRT'), 'oom', /^aborted by SIGABRT: V8 ran out of memory.*output above/],
    [code(134), 'oom', /^aborted: V8 ran out of memory.*output above/],
  ] as const)('says how the process ended: %j', (exit, cause, words) => {
    expect(describeExit(exit, cause)).toMatch(words);
  });

  it('says that the memory limit was reached where the kernel said so', () => {
    const words = describeExit(signal('SIGKILL'), 'oom');
    expect(words).toMatch(/SIGKILL.*control group.*memory limit.*out-of-memory/);
    expect(words).not.toMatch(/by hand|dmesg/);
  });
});

const BOOT: Failure = { cause: 'boot', livedMs: undefined };
const CRASH: Failure = { cause: 'crash', livedMs: 0 };
const KILL: Failure = { cause: 'killed', livedMs: 0 };
const NOT_STARTED: Failure = { ...BOOT, started: false };

const times = (count: number, failure: Failure) => Array<Failure>(count).fill(failure);
const lives = (...livedMs: number[]) => livedMs.map((each) => ({ ...CRASH, livedMs: each }));

/** A slot's history after each failure. */
function histories(failures: readonly Failure[]): FailureHistory[] {
  let history = NO_FAILURES;
  return failures.map((failure) => (history = recordFailure(history, failure)));
}

const BOOT_DELAYS = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000];

describe('the delay before a restart', () => {
  it.each<[what: string, failures: Failure[], delays: number[]]>([
    ['doubles with each failed boot, up to 15 s', times(10, BOOT), BOOT_DELAYS],
    ['doubles if the process cannot be started', times(10, NOT_STARTED), BOOT_DELAYS],
    ['grows to 1 s if workers become ready first', times(5, CRASH), [100, 200, 400, 800, 1_000]],
    ['is 1 s at most in a storm of kills', times(5, KILL), [100, 200, 400, 800, 1_000]],
    ['begins again after a stable life', lives(0, 0, 30_000, 0), [100, 200, 0, 100]],
    ['does not after a shorter one', lives(0, 0, 29_999), [100, 200, 400]],
  ])('%s', (_, failures, delays) => {
    expect(histories(failures).map((each) => restartDelayMs(each, 0.5))).toEqual(delays);
  });

  it.each([
    ['the first', CRASH, 1, [80, 120]],
    ['1 s', CRASH, 10, [800, 1_000]],
    ['15 s', BOOT, 10, [12_000, 15_000]],
  ] as const)('has a jitter of 20 percent: %s', (_, failure, count, range) => {
    const history = histories(times(count, failure)).at(-1)!;
    expect([0, 1].map((random) => restartDelayMs(history, random))).toEqual(range);
  });

  it('is 0 after a stable life', () => {
    expect([0, 1].map((random) => restartDelayMs(NO_FAILURES, random))).toEqual([0, 0]);
  });
});

describe('a crash loop', () => {
  it.each(FAILURE_CAUSES)('begins with the fifth failure: cause %s', (cause) => {
    const degraded = histories(times(5, { ...CRASH, cause })).map((each) => each.degraded);
    expect(degraded).toEqual([false, false, false, false, cause !== 'killed']);
  });

  it.each<[what: string, failures: Failure[], degraded: boolean]>([
    ['also counts workers that die at 31 s', lives(...Array<number>(5).fill(31_000)), true],
    ['ends after a life of 60 s', [...times(5, CRASH), ...lives(60_000)], false],
    ['does not end after a shorter life', [...times(5, CRASH), ...lives(59_999)], true],
    [
      'ends if that life ended by a kill',
      [...times(5, CRASH), { ...KILL, livedMs: 60_000 }],
      false,
    ],
    ['does not end with a kill', [...times(5, CRASH), KILL], true],
    ['does not begin with processes that could not start', times(10, NOT_STARTED), false],
    ['does not end with one', [...times(5, CRASH), NOT_STARTED], true],
  ])('%s', (_, failures, degraded) => {
    expect(histories(failures).at(-1)!.degraded).toBe(degraded);
  });
});
