import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { MetricsSource } from '../../../../src/contract/snapshot/index.js';
import { LocalLink } from '../../../../src/worker/link/local-link.js';

class TestLink extends LocalLink {
  protected say(): void {}
}

let local: TestLink;

beforeEach(() => {
  vi.useFakeTimers();
  local = new TestLink({ slot: 1, pid: 42, generation: 3 }, 'shared', () => 6);
});
afterEach(() => {
  local.meter.stop();
  vi.useRealTimers();
});

const source = (serialize: () => Promise<string>): MetricsSource => ({
  serialize,
});

/** Timers of a process that measures itself. */
const METER = 1;

describe('the metrics of a process', () => {
  it('are an empty text without the module', async () => {
    expect(await local.metrics.serialize()).toEqual({ body: '', ageMs: 0 });
  });

  it('are what the module serialises, now', async () => {
    vi.advanceTimersByTime(5_000);
    local.provideMetrics(source(async () => 'body'));
    expect(await local.metrics.serialize()).toEqual({ body: 'body', ageMs: 0 });
    expect(local.metrics.serializedAt).toBe(performance.now());
    expect(vi.getTimerCount()).toBe(METER);
  });

  it('are what they were before, where they cannot be read: nobody awaits the push', async () => {
    local.provideMetrics(source(async () => 'before'));
    await local.metrics.serialize();
    local.provideMetrics(source(() => Promise.reject(new Error('database is gone'))));
    vi.advanceTimersByTime(400);
    await expect(local.metrics.serialize()).resolves.toEqual({ body: 'before', ageMs: 400 });
    expect(vi.getTimerCount()).toBe(METER);
  });

  it('are an empty text where they could not be read yet', async () => {
    local.provideMetrics(source(() => Promise.reject(new Error('database is gone'))));
    expect(await local.metrics.serialize()).toEqual({ body: '', ageMs: 0 });
    expect(local.metrics.serializedAt).toBe(-Infinity);
  });
});

describe('a process without a primary', () => {
  it('is a cluster of one', () => {
    local.state = 'ready';
    expect(local.ownSnapshot()).toMatchObject({
      balancing: 'shared',
      ports: [],
      desired: 1,
      ready: 1,
      degraded: 0,
      generation: 3,
      workers: [
        {
          slot: 1,
          pid: 42,
          generation: 3,
          state: 'ready',
          restarts: 0,
          lastExit: null,
          responsive: true,
          requestsTotal: 0,
          rebalancedConnectionsTotal: 0,
        },
      ],
    });
  });

  it.each([
    ['starting', true, 0],
    ['ready', true, 1],
    ['draining', false, 0],
  ] as const)('that is %s accepts: %s', (state, accepting, ready) => {
    local.state = state;
    expect(local.accepting).toBe(accepting);
    expect(local.ownSnapshot().ready).toBe(ready);
  });
});

describe('the measurements of a process', () => {
  it('are of the process and of its traffic', () => {
    const { tracker } = local;
    Object.assign(tracker, {
      requestsInFlight: 2,
      requestsTotal: 5,
      rebalancedConnectionsTotal: 3,
      droppedConnections: 4,
    });
    const traffic = {
      threadUtilization: 0,
      openConnections: 0,
      requestsInFlight: 2,
      requestsTotal: 5,
      rebalancedConnectionsTotal: 3,
      logLinesDroppedTotal: 6,
      droppedConnectionsTotal: 4,
    };
    expect(local.measure()).toMatchObject({ ...traffic, cpuSecondsTotal: expect.any(Number) });
    tracker.requestsTotal = 6;
    expect(local.stats()).toMatchObject({ ...traffic, requestsTotal: 6 });
  });
});
