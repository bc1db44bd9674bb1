import { expect, it, vi } from 'vitest';
import { NO_PID } from '../../../src/primary/worker-handle.js';
import type { Program } from '../../../src/primary/release.js';
import { forkWorker } from '../../../src/primary/fork-worker.js';

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
