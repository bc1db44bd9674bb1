import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../../src/contract/options/resolve.js';
import { FakeCluster } from '../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());

/** A cluster, and how it is asked to stop by a signal. */
function start(workers = 2, options: ClusterOptions = {}) {
  const cluster = new FakeCluster(workers, options);
  return {
    cluster,
    signal: (name: NodeJS.Signals = 'SIGTERM') => cluster.supervisor.stop(name, name),
  };
}

/** Every worker leaves; the exit code. */
async function end(cluster: FakeCluster, code = 0): Promise<number | undefined> {
  for (const worker of cluster.workers()) worker.exit({ code });
  await cluster.settled();
  return cluster.exitCode;
}

it('the first request to stop drains every worker, the old and the new of a slot that is being replaced', () => {
  const { cluster, signal } = start();
  cluster.reload();
  cluster.newest(0).becomeReady();
  signal();
  expect(cluster.forked).toHaveLength(3);
  for (const worker of cluster.forked) {
    expect(worker.sent('drain')).toMatchObject([{ cause: 'shutdown', signal: 'SIGTERM' }]);
    expect(worker.handle.state).toBe('draining');
  }
  expect(cluster.events('stopping')).toEqual([{ reason: 'SIGTERM', workers: 3, force: 'drain' }]);
});

it('a shutdown tells whoever reloads or scales, now or later', async () => {
  const { cluster, signal } = start();
  const [reloaded, scaled] = [cluster.reload(), cluster.scale(1)];
  signal();
  const later = cluster.reload();
  await cluster.settled();
  const aborted = { outcome: 'aborted', reason: 'the cluster is shutting down' };
  expect(reloaded).toEqual([{ ...aborted, generation: 1 }]);
  expect(later).toEqual([{ ...aborted, generation: 0 }]);
  expect(scaled).toMatchObject([{ desired: 1 }]);
});

describe('each further request to stop', () => {
  it('asks harder: destroy, kill, and kill for ever', () => {
    const { cluster, signal } = start(1);
    const worker = cluster.current(0);
    const seen = () => [worker.sent('force').length, worker.signals];
    signal('SIGINT');
    expect(seen()).toEqual([0, []]);
    signal('SIGINT');
    expect(seen()).toEqual([1, []]);
    signal('SIGINT');
    expect(seen()).toEqual([1, ['SIGKILL']]);
    signal('SIGINT');
    expect(seen()).toEqual([1, ['SIGKILL', 'SIGKILL']]);
    expect(cluster.events('stopping').map(({ force }) => force)).toEqual([
      'drain',
      'destroy',
      'kill',
      'kill',
    ]);
  });

  it('kills at once who cannot be told to destroy anything', () => {
    const { cluster, signal } = start(2);
    const [deaf, hearing] = [cluster.current(0), cluster.current(1)];
    signal();
    deaf.connected = false;
    signal();
    expect([deaf.signals, hearing.signals]).toEqual([['SIGKILL'], []]);
  });

  it.each([
    ['SIGINT', 130, 0],
    ['SIGTERM', 143, 0],
    ['SIGINT', 130, 1],
  ] as const)('of signal %s ends with %d where workers end with %d', async (name, code, ended) => {
    const { cluster, signal } = start();
    signal('SIGTERM');
    signal(name);
    expect(await end(cluster, ended)).toBe(code);
  });
});

describe('a cluster that cannot go on', () => {
  it('says so once, with the last error, and ends the workers that still start', async () => {
    const cluster = new FakeCluster(2, {}, 'starting');
    const error = { name: 'TypeError', message: 'x is undefined' };
    for (const slot of [0, 1, 0]) cluster.restart(slot);
    expect(cluster.events('failed')).toEqual([]);
    cluster.newest(1).say({ type: 'boot-failed', error });
    cluster.newest(1).exit();
    expect(cluster.events('failed')).toEqual([
      { message: 'no worker became ready in 4 attempts', exitCode: 70, error },
    ]);
    expect(cluster.newest(0).signals).toEqual(['SIGTERM']);
    expect(await end(cluster)).toBe(70);
  });

  it('points to the output of a worker that reported no error', () => {
    const cluster = new FakeCluster(1, {}, 'starting');
    cluster.restart(0);
    cluster.fail(0);
    const message = 'exited with code 1; see its output above';
    expect(cluster.events('failed')).toMatchObject([{ error: { message } }]);
  });

  it.each([
    ['CLUSTER_CONFIGURATION', false, 78],
    ['EADDRINUSE', true, 69],
    ['EACCES', true, 69],
    ['EADDRINUSE', false, undefined], // of another server of the app
    ['ECONNREFUSED', true, undefined],
  ])('is one whose worker reports %s (while it listens: %s)', (code, listening, exitCode) => {
    const cluster = new FakeCluster(1, {}, 'starting');
    const error = { name: 'Error', message: 'x', code };
    cluster.newest(0).say({ type: 'boot-failed', listening, error });
    const codes = cluster.events('failed').map((failed) => failed.exitCode);
    expect(codes).toEqual(exitCode === undefined ? [] : [exitCode]);
  });
});
