import { describe, expect, it } from 'vitest';
import { EventLoopHealthIndicator } from '../../../../src/observe/health/event-loop.health.js';
import { judge } from '../../../../src/observe/health/limits.js';
import type { ClusterLink, WorkerStats } from '../../../../src/contract/snapshot/index.js';
import { TERMINUS_11, TERMINUS_12 } from '../../support/fake-terminus.js';

const link: Pick<ClusterLink, 'stats'> = {
  stats: () =>
    ({
      eventLoopUtilization: 0.5,
      eventLoopDelayP99Ms: 81,
    }) as WorkerStats,
};

describe('a limit', () => {
  it.each([
    { value: 80, status: 'up' },
    { value: 80.1, status: 'degraded' },
    { value: 100, status: 'degraded' },
    { value: 100.1, status: 'down' },
  ])('of 100 makes $value $status', ({ value, status }) => {
    expect(judge('delay', value, 100)).toMatchObject({ status });
  });

  it('that is 0 is above nothing but 0', () => {
    expect(judge('size', 0, 0)).toEqual({ status: 'up' });
    expect(judge('size', 1, 0)).toMatchObject({ status: 'down' });
  });

  it('that nobody has set is never near', () => {
    expect(judge('delay', 1e12, undefined)).toEqual({ status: 'up' });
    expect(judge('delay', 1e12, Infinity)).toEqual({ status: 'up' });
  });
});

describe('the health of the event loop', () => {
  const indicator = new EventLoopHealthIndicator(link, TERMINUS_12);
  const numbers = { eventLoopUtilization: 0.5, eventLoopDelayP99Ms: 81 };

  it('is up with its numbers where there is no limit', () => {
    expect(indicator.check()).toEqual({ eventLoop: { ...numbers, status: 'up' } });
    expect(indicator.check('loop', { maxDelayMs: undefined })).toMatchObject({
      loop: { status: 'up' },
    });
  });

  it.each([
    { maxDelayMs: 102, status: 'up' },
    { maxDelayMs: 100, status: 'degraded', message: 'near its limit of 100' },
    { maxDelayMs: 80, status: 'down', message: 'above its limit of 80' },
  ])('with a limit of $maxDelayMs ms is $status at 81', ({ maxDelayMs, status, message }) => {
    expect(indicator.check('eventLoop', { maxDelayMs })).toEqual({
      eventLoop: {
        ...numbers,
        status,
        ...(message && { message: `eventLoopDelayP99Ms is 81, ${message}` }),
      },
    });
  });

  it('is up, and says why not wholly, where terminus has no degraded', () => {
    const old = new EventLoopHealthIndicator(link, TERMINUS_11);
    expect(old.check('eventLoop', { maxDelayMs: 100 }).eventLoop).toEqual({
      ...numbers,
      status: 'up',
      message: 'eventLoopDelayP99Ms is 81, near its limit of 100',
    });
    expect(old.check('eventLoop', { maxDelayMs: 80 }).eventLoop).toMatchObject({ status: 'down' });
  });
});
