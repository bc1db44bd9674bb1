import { describe, expect, it } from 'vitest';
import * as errors from '../../../../src/contract/errors/index.js';

const {
  ClusterAddressError,
  ClusterConfigurationError,
  ClusterError,
  ClusterNoPrimaryError,
  ClusterUncloneableError,
  ClusterWorkersFailedError,
  isAddressErrorCode,
} = errors;

const errno = (code: string) => Object.assign(new Error(`bind ${code}`), { code });

describe('an error of the cluster', () => {
  const ALL = [
    [new ClusterAddressError('x', errno('EACCES')), 'CLUSTER_ADDRESS_UNAVAILABLE', 69],
    [new ClusterConfigurationError('x'), 'CLUSTER_CONFIGURATION', 78],
    [new ClusterNoPrimaryError('x', 'y'), 'CLUSTER_NO_PRIMARY', 1],
    [new ClusterUncloneableError('x'), 'CLUSTER_UNCLONEABLE_VALUE', 1],
    [new ClusterWorkersFailedError('x'), 'CLUSTER_WORKERS_FAILED', 70],
  ] as const;

  it('is one of these classes', () => {
    const classes = Object.entries(errors).flatMap(([name, each]) =>
      'prototype' in each && each.prototype instanceof ClusterError ? name : [],
    );
    expect(ALL.map(([error]) => error.constructor.name).toSorted()).toEqual(classes.toSorted());
  });

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
  it.each([
    ['EADDRINUSE', /already in use.*another port/],
    ['EACCES', /permission denied.*1023/],
    ['EADDRNOTAVAIL', /no interface.*"host"/],
    ['ENOTFOUND', /does not resolve.*"host"/],
    ['EAI_AGAIN', /does not resolve.*DNS/],
    ['ENOENT', /directory.*"path"/],
  ])('is named, with what %s means and what to do', (code, remedy) => {
    const { message } = new ClusterAddressError('http://127.0.0.1:3000', errno(code));
    expect(message).toContain('cannot listen on http://127.0.0.1:3000: ');
    expect(message).toContain(code);
    expect(message).toMatch(remedy);
    expect(isAddressErrorCode(code)).toBe(true);
  });

  it('is explained by the error itself where its code is not known', () => {
    expect(new ClusterAddressError('x', errno('EWHAT')).message).toBe(
      'cannot listen on x: bind EWHAT',
    );
    expect(new ClusterAddressError('x', new Error('odd')).message).toContain('odd');
  });

  it.each([undefined, '', 'ECONNRESET', 'eaddrinuse'])('is not what %j says', (code) => {
    expect(isAddressErrorCode(code)).toBe(false);
  });
});
