import { describe, expect, it } from 'vitest';
import { OffloadHealthIndicator } from '../../../../src/observe/health/offload.health.js';
import type { Offload } from '../../../../src/offload/index.js';
import type { OffloadSnapshot } from '../../../../src/offload/run/runner.interface.js';
import { resolveModuleOptions } from '../../../../src/contract/options/module.js';
import { TERMINUS_12 } from '../../support/fake-terminus.js';

/** The indicator's result, in the form of terminus. */
function check(
  about: Partial<OffloadSnapshot> = {},
  key?: 'pool' | 'offload',
  limits: { maxQueueSize?: number } = {},
) {
  const snapshot: OffloadSnapshot = {
    threads: 2,
    running: 1,
    queueSize: 3,
    ...about,
  };
  const options = resolveModuleOptions({ offload: { maxQueue: 10 } }, {});
  const offload = { snapshot: () => snapshot } as Offload;
  const indicator = new OffloadHealthIndicator(TERMINUS_12, offload, options);
  return key === undefined ? indicator.check() : indicator.check(key, limits);
}

const DETAILS = { threads: 2, running: 1, queueSize: 3, maxQueue: 10 };

describe('the health of the threads', () => {
  it('is up with the running and the waiting calls, under any key', () => {
    expect(check()).toEqual({ offload: { status: 'up', ...DETAILS } });
    expect(check({}, 'pool')).toEqual({ pool: { status: 'up', ...DETAILS } });
  });

  it.each([
    { queueSize: 8, status: 'up' },
    { queueSize: 9, status: 'degraded', message: 'queueSize is 9, near its limit of 10' },
    { queueSize: 10, status: 'degraded', message: 'queueSize is 10, near its limit of 10' },
    { queueSize: 11, status: 'down', message: 'queueSize is 11, above its limit of 10' },
  ])('with maxQueueSize 10 is $status while $queueSize wait', ({ queueSize, ...told }) => {
    expect(check({ queueSize }, 'offload', { maxQueueSize: 10 })).toEqual({
      offload: { ...DETAILS, queueSize, ...told },
    });
  });
});
