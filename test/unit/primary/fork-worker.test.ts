import cluster, { type Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { WORKER_VARIABLE } from '../../../src/contract/process/assignment.js';
import { NO_PID } from '../../../src/primary/worker-handle.js';
import type { Program } from '../../../src/primary/release.js';
import { forkWorker } from '../../../src/primary/fork-worker.js';

afterEach(() => vi.restoreAllMocks());

it('makes a worker that exits at once of one that cannot even be prepared', async () => {
  const error = new Error('too many open files');
  const program = {
    revive: () => {
      throw error;
    },
  } as unknown as Program;
  const release = { generation: 3, script: '/app/main.js', cwd: '/app' };
  const fork = { type: 'fork', worker: 1, slot: 2, workers: 4, release } as const;
  const tell = vi.fn();
  const worker = forkWorker(
    { ...fork, printsBootError: true },
    program,
    {
      watchdog: true,
      log: { format: 'text', level: 'info', write: undefined },
    },
    tell,
  );
  expect(worker.identity).toEqual({ slot: 2, generation: 3, pid: NO_PID });
  await vi.waitFor(() => expect(tell).toHaveBeenCalledTimes(2));
  expect(tell.mock.calls).toEqual([
    [{ type: 'channel-error', error }],
    [{ type: 'exit', exit: { code: null, signal: null } }],
  ]);
});

describe('a forked worker', () => {
  /** Forks with a fake of node:cluster, whose worker has a listener of Node's own. */
  function fork(printsBootError = true) {
    const process = Object.assign(new EventEmitter(), { pid: 4711, stdio: [], send: vi.fn() });
    const worker = Object.assign(new EventEmitter(), { process }) as unknown as Worker;
    worker.on('message', () => {});
    vi.spyOn(cluster, 'setupPrimary').mockReturnValue();
    const forked = vi.spyOn(cluster, 'fork').mockReturnValue(worker);
    const release = { generation: 3, script: '/app/main.js', cwd: import.meta.dirname };
    const tell = vi.fn();
    forkWorker(
      { type: 'fork', worker: 1, slot: 2, workers: 4, release, printsBootError },
      { revive: () => release } as unknown as Program,
      { watchdog: false, log: { format: 'text', level: 'info', write: undefined } },
      tell,
    );
    return { worker, tell, environment: forked.mock.calls[0]![0] as Record<string, string> };
  }

  it.each([true, false])(
    'is told whether it prints the error of its start: %s',
    (printsBootError) => {
      const { environment } = fork(printsBootError);
      expect(JSON.parse(environment[WORKER_VARIABLE]!)).toMatchObject({ slot: 2, printsBootError });
    },
  );

  const OURS = { ns: 'nestjs-cluster', v: 1, type: 'leaving' };
  const OF_THE_APP = { type: 'socket' };

  it.each([
    { what: 'a message of this package', message: OURS, listens: true, closed: 1 },
    { what: 'a message that the app awaits', message: OF_THE_APP, listens: true, closed: 0 },
    { what: 'a message without a listener', message: OF_THE_APP, listens: false, closed: 1 },
  ])('sends a handle with $what: closed $closed times', ({ message, listens, closed }) => {
    for (const listener of ['worker', 'cluster'] as const) {
      const { worker, tell } = fork();
      const own = () => {};
      const emitter: EventEmitter = listener === 'worker' ? worker : cluster;
      if (listens) emitter.on('message', own);
      const handle = { close: vi.fn() };
      worker.emit('message', message, handle as never);
      emitter.off('message', own);
      expect(handle.close).toHaveBeenCalledTimes(closed);
      expect(tell).toHaveBeenCalledExactlyOnceWith({ type: 'message', message });
    }
  });
});
