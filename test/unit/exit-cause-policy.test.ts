import { describe, expect, it } from 'vitest';
import {
  classifyFailure,
  describeExit,
  type ProcessExit,
} from '../../src/primary/policies/exit-cause.policy.js';

const code = (value: number | null): ProcessExit => ({ code: value, signal: null });
const signal = (value: NodeJS.Signals): ProcessExit => ({ code: null, signal: value });

describe('a worker that was ready failed', () => {
  it.each([
    ['by exit', code(0), 'exit'],
    ['by crash', code(1), 'crash'],
    ['by crash', code(13), 'crash'],
    ['by crash', code(134), 'crash'],
    ['by crash', code(255), 'crash'],
    ['by crash', signal('SIGABRT'), 'crash'],
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
    expect(classifyFailure('ready', exit, false)).toBe(cause);
  });
});

describe('a worker that was starting failed', () => {
  it.each([code(0), code(1), code(null), signal('SIGKILL'), signal('SIGSEGV')])(
    'to boot, however it ended: %j',
    (exit) => {
      expect(classifyFailure('starting', exit, false)).toBe('boot');
    },
  );
});

describe('a worker that did not answer failed', () => {
  it.each([
    ['ready', signal('SIGKILL')],
    ['ready', code(0)],
    ['starting', signal('SIGKILL')],
  ] as const)('by its hang, not by what ended it (%s, %j)', (state, exit) => {
    expect(classifyFailure(state, exit, true)).toBe('hang');
  });
});

describe('an exit in words', () => {
  it.each([
    [code(0), /^exited with code 0$/],
    [code(7), /^exited with code 7$/],
    [code(null), /^it could not be started$/],
    [signal('SIGSEGV'), /^killed by SIGSEGV$/],
    [signal('SIGTERM'), /^killed by SIGTERM$/],
  ])('says how the process ended: %j', (exit, words) => {
    expect(describeExit(exit)).toMatch(words);
  });

  it('points to the out-of-memory killer behind a SIGKILL', () => {
    expect(describeExit(signal('SIGKILL'))).toMatch(/SIGKILL.*out-of-memory.*dmesg/);
  });

  it('points to the heap behind a SIGABRT', () => {
    expect(describeExit(signal('SIGABRT'))).toMatch(/SIGABRT.*memory/);
  });
});
