import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterConfigurationError, WorkersFailedError } from '../../src/errors/index.js';
import type { ClusterOptions } from '../../src/options/index.js';
import { laterBy } from '../../src/primary/later.js';
import type { Listening } from '../../src/primary/listening/listening.interface.js';
import { Shutdown } from '../../src/primary/shutdown.js';
import { FakeCluster } from './fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function start(workers = 2, options: ClusterOptions = {}) {
  const cluster = new FakeCluster(workers, options);
  const socket = { close: vi.fn() };
  const onBegin = vi.fn();
  const shutdown = new Shutdown(
    cluster.options,
    cluster.table,
    socket as unknown as Listening,
    cluster.emit,
    laterBy((action) => action()),
    onBegin,
  );
  let exitCode: number | undefined;
  void shutdown.ended.then((code) => (exitCode = code));
  return {
    cluster,
    socket,
    onBegin,
    shutdown,
    /** Every worker leaves; the exit code. */
    end: async (well = true) => {
      for (const worker of cluster.forked) {
        cluster.exit(worker);
        shutdown.workerEnded(well);
      }
      await vi.advanceTimersByTimeAsync(0);
      return exitCode;
    },
    exitCode: async () => {
      await vi.advanceTimersByTimeAsync(0);
      return exitCode;
    },
  };
}

describe('the first request to stop', () => {
  it('drains every worker, the old and the new of a slot that is being replaced', () => {
    const { cluster, shutdown, onBegin } = start();
    const slot = cluster.slot(0);
    slot.candidate = cluster.fork(slot, slot.release, 'ready').handle;
    shutdown.request('SIGTERM', 15);
    for (const worker of cluster.forked) {
      expect(worker.sent('drain')).toMatchObject([{ cause: 'shutdown' }]);
      expect(worker.handle.state).toBe('draining');
    }
    expect(shutdown.begun).toBe(true);
    expect(onBegin).toHaveBeenCalledOnce();
    expect(cluster.events('stopping')).toEqual([{ reason: 'SIGTERM', workers: 3, force: 'drain' }]);
  });

  it('leaves those alone that drain already', () => {
    const { cluster, shutdown } = start(1);
    cluster.current(0).handle.enter('draining');
    shutdown.request('SIGTERM', 15);
    expect(cluster.current(0).sent('drain')).toEqual([]);
  });

  it('starts nobody any more', () => {
    const { cluster, shutdown } = start();
    const startDue = vi.fn();
    cluster.slot(1).scheduleStart(500, startDue);
    shutdown.request('SIGTERM', 15);
    vi.advanceTimersByTime(1_000);
    expect(startDue).not.toHaveBeenCalled();
  });

  it('ends with 0 when the last worker is gone, not before (S1)', async () => {
    const { cluster, shutdown, end, exitCode } = start();
    shutdown.request('SIGTERM', 15);
    cluster.exit(cluster.forked[0]!);
    shutdown.workerEnded(true);
    expect(await exitCode()).toBeUndefined();
    expect(await end()).toBe(0);
  });

  it('ends with 1 where a worker did not end as it should (D10)', async () => {
    const { cluster, shutdown, end } = start();
    shutdown.request('SIGTERM', 15);
    cluster.exit(cluster.forked[0]!);
    shutdown.workerEnded(false);
    expect(await end()).toBe(1);
  });

  it('ends at once where there is no worker', async () => {
    const { cluster, shutdown, exitCode } = start(1);
    cluster.exit(cluster.current(0));
    shutdown.request('SIGTERM', 15);
    expect(await exitCode()).toBe(0);
  });

  it.each([0, 700])('holds the socket for the lame duck of %d ms', (lameDuckMs) => {
    const { socket, shutdown } = start(2, { shutdown: { lameDuckMs } });
    shutdown.request('SIGTERM', 15);
    if (lameDuckMs > 0) vi.advanceTimersByTime(lameDuckMs - 1);
    expect(socket.close).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(socket.close).toHaveBeenCalled();
  });
});

describe('each further request to stop', () => {
  it('asks harder: destroy, kill, and kill for ever (S4)', () => {
    const { cluster, shutdown } = start(1);
    const worker = cluster.current(0);
    shutdown.request('SIGINT', 2);
    expect([worker.sent('force').length, worker.signals]).toEqual([0, []]);
    shutdown.request('SIGINT', 2);
    expect([worker.sent('force').length, worker.signals]).toEqual([1, []]);
    shutdown.request('SIGINT', 2);
    expect(worker.signals).toEqual(['SIGKILL']);
    shutdown.request('SIGINT', 2);
    expect(worker.signals).toEqual(['SIGKILL', 'SIGKILL']);
    expect(cluster.events('stopping').map(({ force }) => force)).toEqual([
      'drain',
      'destroy',
      'kill',
      'kill',
    ]);
  });

  it('is nothing more where it is a call: only a signal is impatience', () => {
    const { cluster, shutdown } = start(1);
    const worker = cluster.current(0);
    shutdown.request('SIGTERM', 15);
    shutdown.request('shutdown()', 0);
    shutdown.request('shutdown()', 0);
    expect([worker.sent('force').length, worker.signals]).toEqual([0, []]);
    expect(cluster.events('stopping')).toHaveLength(1);
  });

  it('kills at once who cannot be told to destroy anything', () => {
    const { cluster, shutdown } = start(2);
    const [deaf, hearing] = [cluster.current(0), cluster.current(1)];
    shutdown.request('SIGTERM', 15);
    deaf.connected = false;
    shutdown.request('SIGTERM', 15);
    expect([deaf.signals, hearing.signals]).toEqual([['SIGKILL'], []]);
  });

  it.each([
    [2, 130],
    [15, 143],
    [0, 0],
  ])('of signal %d ends with %d', async (signalNumber, code) => {
    const { shutdown, end } = start();
    shutdown.request('first', 15);
    shutdown.request('second', signalNumber);
    expect(await end()).toBe(code);
  });

  it('tells that it was forced also where workers did not end as they should', async () => {
    const { shutdown, end } = start();
    shutdown.request('SIGTERM', 15);
    shutdown.request('SIGINT', 2);
    expect(await end(false)).toBe(130);
  });
});

describe('a cluster that cannot go on', () => {
  it('says so once, with the last error, and drains whoever still serves', async () => {
    const { cluster, shutdown, end } = start();
    const cause = { name: 'TypeError', message: 'x is undefined' };
    shutdown.giveUp(new WorkersFailedError('every worker is in a crash loop', { cause }));
    shutdown.giveUp(new WorkersFailedError('again', { cause }));
    expect(cluster.events('failed')).toEqual([
      { message: 'every worker is in a crash loop', exitCode: 70, error: cause },
    ]);
    for (const worker of cluster.forked) expect(worker.sent('drain')).toHaveLength(1);
    expect(await end()).toBe(70);
  });

  it('ends with the code of the error, also where workers do not end as they should', async () => {
    const { cluster, shutdown, end } = start();
    shutdown.giveUp(new ClusterConfigurationError('port: "x" is not allowed'));
    expect(cluster.events('failed')).toMatchObject([{ exitCode: 78, error: null }]);
    expect(await end(false)).toBe(78);
  });

  it('does not say so where it was asked to stop already', async () => {
    const { cluster, shutdown, end } = start();
    shutdown.request('SIGTERM', 15);
    shutdown.giveUp(new WorkersFailedError('no worker became ready'));
    expect(cluster.events('failed')).toEqual([]);
    expect(await end()).toBe(0);
  });
});

describe('a worker that ends while nothing is shut down', () => {
  it('ends nothing', async () => {
    const { cluster, shutdown, exitCode } = start(1);
    cluster.exit(cluster.current(0));
    shutdown.workerEnded(false);
    expect(await exitCode()).toBeUndefined();
    shutdown.request('SIGTERM', 15);
    expect(await exitCode()).toBe(0);
  });
});
