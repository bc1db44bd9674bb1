import { describe, expect, it } from 'vitest';
import {
  type Circumstances,
  classifyFailure,
  describeExit,
  type ProcessExit,
} from '../../../../../src/supervisor/decide/policies/exit-cause.policy.js';

const code = (value: number | null): ProcessExit => ({ code: value, signal: null });
const signal = (value: NodeJS.Signals): ProcessExit => ({ code: null, signal: value });

const causeOf = (exit: ProcessExit, known: Partial<Circumstances> = {}) =>
  classifyFailure(exit, { state: 'ready', oomKill: false, explained: false, ...known });

describe('a worker that was ready failed', () => {
  it.each([
    ['by exit', code(0), 'exit'],
    ['by crash', code(1), 'crash'],
    ['by crash', code(13), 'crash'],
    ['by crash', code(133), 'crash'],
    ['by crash', code(137), 'crash'],
    ['by crash', code(255), 'crash'],
    ['by crash', signal('SIGBUS'), 'crash'],
    ['by crash', signal('SIGFPE'), 'crash'],
    ['by crash', signal('SIGILL'), 'crash'],
    ['by crash', signal('SIGSEGV'), 'crash'],
    ['by crash', signal('SIGSYS'), 'crash'],
    ['by crash', signal('SIGTRAP'), 'crash'],
    ['from outside', signal('SIGKILL'), 'killed'],
    ['from outside', signal('SIGTERM'), 'killed'],
    ['from outside', signal('SIGINT'), 'killed'],
    ['from outside', signal('SIGQUIT'), 'killed'],
    ['from outside', signal('SIGXCPU'), 'killed'],
  ] as const)('%s where it ended by %j', (_, exit, cause) => {
    expect(causeOf(exit)).toBe(cause);
    expect(causeOf(exit, { explained: true })).toBe(cause);
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
    [signal('SIGABRT'), 'ready'],
    [code(134), 'ready'],
    [signal('SIGABRT'), 'starting'],
    [code(134), 'starting'],
  ] as const)('where it aborted and had said nothing: %j while %s', (exit, state) => {
    expect(causeOf(exit, { state })).toBe('oom');
  });

  it.each([
    [signal('SIGABRT'), 'ready', 'crash'],
    [code(134), 'ready', 'crash'],
    [signal('SIGABRT'), 'starting', 'boot'],
    [code(134), 'starting', 'boot'],
  ] as const)(
    'not where an error of its own explains the abort: %j while %s is %s',
    (exit, state, cause) => {
      expect(causeOf(exit, { state, explained: true })).toBe(cause);
    },
  );

  it.each(['ready', 'starting'] as const)(
    'where the kernel has killed for want of memory and it ended by SIGKILL, while %s',
    (state) => {
      expect(causeOf(signal('SIGKILL'), { state, oomKill: true })).toBe('oom');
      expect(causeOf(signal('SIGKILL'), { state, oomKill: true, explained: true })).toBe('oom');
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
    [code(null), 'boot', /^it could not be started$/],
    [signal('SIGSEGV'), 'crash', /^killed by SIGSEGV$/],
    [signal('SIGTERM'), 'killed', /^killed by SIGTERM$/],
    [signal('SIGABRT'), 'crash', /^aborted by SIGABRT \(process\.abort\(\)\)$/],
  ] as const)('says how the process ended: %j', (exit, cause, words) => {
    expect(describeExit(exit, cause)).toMatch(words);
  });

  it('points to the out-of-memory killer behind a SIGKILL', () => {
    expect(describeExit(signal('SIGKILL'), 'killed')).toMatch(/SIGKILL.*out-of-memory.*dmesg/);
  });

  it('says that the memory limit was reached where the kernel said so', () => {
    const words = describeExit(signal('SIGKILL'), 'oom');
    expect(words).toMatch(/SIGKILL.*memory limit.*control group.*out-of-memory/);
    expect(words).not.toMatch(/by hand|dmesg/);
  });

  it.each([
    [signal('SIGABRT'), /^aborted by SIGABRT: V8 ran out of memory.*output above/],
    [code(134), /^aborted: V8 ran out of memory.*output above/],
  ] as const)('points to the heap and to what V8 wrote behind %j', (exit, words) => {
    expect(describeExit(exit, 'oom')).toMatch(words);
  });
});
