import { describe, expect, it } from 'vitest';
import {
  type Circumstances,
  classifyFailure,
  describeExit,
  type ProcessExit,
} from '../../../../src/decide/policies/failure.policy.js';

const code = (value: number | null): ProcessExit => ({ code: value, signal: null });
const signal = (value: NodeJS.Signals): ProcessExit => ({ code: null, signal: value });

const causeOf = (exit: ProcessExit, known: Partial<Circumstances> = {}) =>
  classifyFailure(exit, { state: 'ready', oomKill: false, explained: false, ...known });

describe('a worker that was ready failed', () => {
  it.each([
    ['exit', [code(0)]],
    ['crash', [1, 13, 133, 137, 255].map(code)],
    [
      'crash',
      (['SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGSYS', 'SIGTRAP'] as const).map(signal),
    ],
    ['killed', (['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGXCPU'] as const).map(signal)],
  ] as const)('by %s where it ended by one of %j', (cause, exits) => {
    for (const exit of exits) {
      expect(causeOf(exit)).toBe(cause);
      expect(causeOf(exit, { explained: true })).toBe(cause);
    }
  });
});

describe('a worker that was starting failed', () => {
  it.each([code(0), code(1), code(null), signal('SIGKILL'), signal('SIGSEGV')])(
    'to boot, however it ended: %j',
    (exit) => {
      expect(causeOf(exit, { state: 'starting' })).toBe('boot');
    },
  );
});

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
    expect(words).toMatch(/SIGKILL.*memory limit.*control group.*out-of-memory/);
    expect(words).not.toMatch(/manually|dmesg/);
  });
});
