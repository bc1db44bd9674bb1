import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import type { Effect } from '../decide/effect.js';
import { forkWorker, type Launch, type ProcessEvent } from './fork-worker.js';
import type { Program } from './release.js';
import { workerArguments } from './worker-arguments.js';
import type { WorkerHandle } from './worker-handle.js';

/** Starts a process as the core wants it: of which program, with what arguments and pipes. */
export function startWorker(
  { slot, first, workers, release, patient, printsBootError }: Effect & { type: 'fork' },
  program: Program,
  { watchdog, bootLogs }: Pick<ResolvedClusterOptions, 'watchdog' | 'bootLogs'>,
  tell: (event: ProcessEvent) => void,
): WorkerHandle {
  const isShown = bootLogs === 'all' || (bootLogs === 'first' && slot === 0 && first);
  const prepare = (): Launch => ({
    workers,
    release: program.revive(release, patient),
    arguments: workerArguments(workers),
    watchdog,
    printsBootError,
    quiet: !isShown,
  });
  return forkWorker({ slot, generation: release.generation }, prepare, tell);
}
