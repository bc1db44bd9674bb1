import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const ERROR = { name: 'Error', message: 'x' };

/** One slot; its restarts are punctual. */
const start = (workers = 1) => new FakeCluster(workers, { hangTimeoutMs: false });

describe('a slot', () => {
  it('gives its place to the next worker while the old one leaves, and keeps that', () => {
    const cluster = start();
    const old = cluster.newest(0);
    old.say({ type: 'fatal', error: ERROR, abort: false, requests: [] });
    expect(cluster.supervisor.snapshot().ready).toBe(0);
    vi.advanceTimersByTime(100);
    cluster.newest(0).becomeReady();
    expect(cluster.picture).toEqual(['0: gen=0 draining', '0: gen=0 ready']);
    old.exit({ code: 0 });
    vi.advanceTimersByTime(1_000);
    expect(cluster.picture).toEqual(['0: gen=0 ready']);
    expect(cluster.forked).toHaveLength(2);
  });

  it('remembers how its last worker ended', () => {
    vi.setSystemTime('2026-01-01T00:00:00Z');
    const cluster = start();
    cluster.newest(0).exit({ code: 3 });
    expect(cluster.slot(0)).toMatchObject([
      { lastExit: { cause: 'crash', code: 3, signal: null, at: '2026-01-01T00:00:00.000Z' } },
    ]);
  });

  it('is not started after its wait once that is called off', () => {
    const cluster = start(3);
    cluster.fail(2);
    void cluster.supervisor.scale(2, 'test');
    cluster.fail(0);
    cluster.supervisor.stop('test');
    vi.advanceTimersByTime(5_000);
    expect(cluster.forked).toHaveLength(3);
  });

  it('is started once, also where it is wanted again while it waits', () => {
    const cluster = start(2);
    cluster.fail(1);
    void cluster.supervisor.scale(1, 'test');
    void cluster.supervisor.scale(2, 'test');
    vi.advanceTimersByTime(5_000);
    expect(cluster.forked).toHaveLength(3);
  });

  it('counts restarts by their cause', () => {
    const cluster = start();
    cluster.restart(0).becomeReady();
    cluster.restart(0, { signal: 'SIGABRT' }).becomeReady();
    cluster.restart(0).becomeReady();
    expect(cluster.slot(0)).toMatchObject([{ restarts: 3, restartsByCause: { crash: 2, oom: 1 } }]);
  });

  it('adds up the requests that drains of its workers cut off', () => {
    const cluster = start();
    for (const abortedRequests of [2, 0, 5]) {
      const worker = cluster.newest(0);
      worker.say({ type: 'leaving' });
      vi.advanceTimersByTime(100);
      const cutOff = { destroyedConnections: abortedRequests, abortedRequests };
      const nothing = { destroyedWebSockets: 0, hookError: null };
      worker.say({ type: 'drained', report: { ...nothing, ...cutOff } });
      worker.exit({ code: 0 });
      vi.advanceTimersByTime(0);
      cluster.newest(0).becomeReady();
    }
    cluster.newest(0).exit();
    expect(cluster.slot(0)).toMatchObject([{ abortedRequestsTotal: 7 }]);
  });
});

describe('a slot with a candidate', () => {
  function withCandidate() {
    const cluster = start();
    const old = cluster.newest(0);
    void cluster.supervisor.reload('test');
    return { cluster, old, candidate: cluster.newest(0) };
  }

  it('gives it the place and the release, also for the workers that come after', () => {
    const { cluster, candidate } = withCandidate();
    candidate.becomeReady();
    vi.advanceTimersByTime(1_000);
    candidate.answerCheck(true);
    expect(cluster.picture).toEqual(['0: gen=0 draining', '0: gen=1 ready']);
    cluster.restart(0);
    expect(cluster.forks.at(-1)).toMatchObject({ generation: 1 });
  });

  it('keeps its worker when the candidate ends, or is sent away', () => {
    const { cluster, candidate } = withCandidate();
    candidate.exit();
    expect(cluster.picture).toEqual(['0: gen=0 ready']);
    void cluster.supervisor.reload('again');
    cluster.newest(0).becomeReady();
    vi.advanceTimersByTime(1_000);
    cluster.newest(0).answerCheck(false);
    expect(cluster.picture).toEqual(['0: gen=0 ready', '0: gen=2 draining']);
    vi.advanceTimersByTime(20_000);
    expect(cluster.forked).toHaveLength(3);
  });

  it('keeps the candidate when its worker ends: nothing else is started', () => {
    const { cluster, old, candidate } = withCandidate();
    old.exit();
    candidate.becomeReady();
    vi.advanceTimersByTime(1_000);
    candidate.answerCheck(true);
    vi.advanceTimersByTime(20_000);
    expect(cluster.picture).toEqual(['0: gen=1 ready']);
    expect(cluster.forked).toHaveLength(2);
    expect(cluster.story).not.toContain('worker-restarting');
  });
});
