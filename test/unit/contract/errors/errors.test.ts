import { describe, expect, it, vi } from 'vitest';
import {
  ClusterAddressError,
  ClusterConfigurationError,
  ClusterError,
  ClusterNoPrimaryError,
  ClusterUncloneableError,
  ClusterWorkersFailedError,
  isAddressErrorCode,
  OnceAMinute,
  onceEach,
} from '../../../../src/contract/errors/errors.js';

const errno = (code: string) => Object.assign(new Error(`bind ${code}`), { code });

describe('an error of the cluster', () => {
  const ALL = [
    [new ClusterAddressError('x', errno('EACCES')), 'CLUSTER_ADDRESS_UNAVAILABLE', 69],
    [new ClusterConfigurationError('x'), 'CLUSTER_CONFIGURATION', 78],
    [new ClusterNoPrimaryError('x', 'y'), 'CLUSTER_NO_PRIMARY', 1],
    [new ClusterUncloneableError('x'), 'CLUSTER_UNCLONEABLE_VALUE', 1],
    [new ClusterWorkersFailedError('x'), 'CLUSTER_WORKERS_FAILED', 70],
  ] as const;

  it.each(ALL)('has its name, code and exit code: %s', (error, code, exitCode) => {
    const { name } = error.constructor;
    expect(error).toBeInstanceOf(ClusterError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name, code, exitCode });
    expect(error.stack).toContain(name);
  });

  it('keeps its cause', () => {
    const cause = new Error('underneath');
    expect(new ClusterWorkersFailedError('x', { cause }).cause).toBe(cause);
    const inUse = errno('EADDRINUSE');
    expect(new ClusterAddressError('x', inUse).cause).toBe(inUse);
  });
});

describe('an address that cannot be listened on', () => {
  it('is named, with what the code means and what to do', () => {
    for (const [code, remedy] of [
      ['EADDRINUSE', /already in use.*another port/],
      ['EACCES', /permission denied.*1023/],
      ['EADDRNOTAVAIL', /no interface.*"host"/],
      ['ENOTFOUND', /does not resolve.*"host"/],
      ['EAI_AGAIN', /does not resolve.*DNS/],
      ['ENOENT', /directory.*"path"/],
    ] as const) {
      const { message } = new ClusterAddressError('http://127.0.0.1:3000', errno(code));
      expect(message).toContain('cannot listen on http://127.0.0.1:3000: ');
      expect(message).toContain(code);
      expect(message).toMatch(remedy);
      expect(isAddressErrorCode(code)).toBe(true);
    }
    expect(isAddressErrorCode(undefined)).toBe(false);
    expect(isAddressErrorCode('ECONNRESET')).toBe(false);
  });

  it('is explained by the error itself where its code is not known', () => {
    expect(new ClusterAddressError('x', errno('EWHAT')).message).toBe(
      'cannot listen on x: bind EWHAT',
    );
  });
});

it('OnceAMinute logs one line a minute for each kind, with the number that it left out', () => {
  vi.useFakeTimers();
  const logged: string[] = [];
  const lines = new OnceAMinute((line) => void logged.push(line));
  const lose = (task: string, reason: string) => lines.say(`${task} was lost: ${reason}`, task);
  lose('report', 'out of memory');
  lose('image', 'exited with 3');
  for (let i = 0; i < 5; i++) lose('report', 'exited with 3');
  expect(logged).toEqual(['report was lost: out of memory', 'image was lost: exited with 3']);

  vi.advanceTimersByTime(60_000);
  lose('report', 'exited with 3');
  lose('image', 'exited with 3');
  expect(logged.slice(2)).toEqual([
    'report was lost: exited with 3 (and 5 more since the last such line)',
    'image was lost: exited with 3',
  ]);
});

it('onceEach logs each text once', () => {
  const logged: string[] = [];
  const warn = onceEach((line) => void logged.push(line));
  for (const text of ['a', 'b', 'a', 'b']) warn(text);
  expect(logged).toEqual(['a', 'b']);
});
