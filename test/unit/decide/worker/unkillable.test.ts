import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PING_INTERVAL_MS } from '../../../../src/decide/worker/liveness.js';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const GIVEN_UP_MS = 10_000;

describe('a process that SIGKILL does not end', () => {
  it('is abandoned: its slot gets another worker, and one line says so', () => {
    const cluster = new FakeCluster(2);
    const stuck = cluster.current(0);
    for (const worker of cluster.forked) worker.lively = worker !== stuck;
    vi.advanceTimersByTime(cluster.options.hangTimeoutMs + 2 * PING_INTERVAL_MS);
    expect(stuck.signals).toContain('SIGKILL');
    expect(cluster.forked).toHaveLength(2);

    vi.advanceTimersByTime(GIVEN_UP_MS + 1_000);

    expect(cluster.forks.slice(2)).toMatchObject([{ slot: 0 }]);
    expect(cluster.events('worker-died')).toMatchObject([{ cause: 'hang' }]);
    expect(cluster.events('warning')).toMatchObject([
      { worker: stuck.handle.identity, message: expect.stringContaining('was abandoned') },
    ]);
    // It ends at last: that is old news.
    stuck.exit({ signal: 'SIGKILL' });
    expect(cluster.events('worker-died')).toHaveLength(1);
    expect(cluster.forked).toHaveLength(3);
  });

  it('does not keep the primary from its end', async () => {
    const cluster = new FakeCluster(1, { hangTimeoutMs: false });
    cluster.supervisor.stop('SIGTERM', 'SIGTERM');
    for (const signal of ['SIGTERM', 'SIGTERM'] as const) cluster.supervisor.stop(signal, signal);
    expect(cluster.newest(0).signals).toContain('SIGKILL');
    vi.advanceTimersByTime(GIVEN_UP_MS - 1);
    await cluster.settled();
    expect(cluster.exitCode).toBeUndefined();
    vi.advanceTimersByTime(1);
    await cluster.settled();
    expect(cluster.exitCode).toBe(128 + 15);
  });
});
