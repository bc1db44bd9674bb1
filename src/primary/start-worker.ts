import type { BootErrors } from './boot-errors.js';
import { forkWorker } from './fork-worker.js';
import type { Surroundings } from './lifecycle.js';
import type { Release } from './release.js';
import type { Slot } from './slot.js';
import { whatIsKeptBack } from './policies/boot-logs.policy.js';
import { mayBeDebugged, workerArguments } from './worker-arguments.js';
import type { WorkerHandle } from './worker-handle.js';

/** Starts a process for a slot, and gives it the time that a boot may take. */
export function startWorker(
  slot: Slot,
  release: Release,
  { options, program, table, post }: Pick<Surroundings, 'options' | 'program' | 'table' | 'post'>,
  bootErrors: BootErrors,
): WorkerHandle {
  const { readyTimeoutMs, watchdog, bootLogs } = options;
  const nodeArguments = workerArguments(table.desired);
  const isFirst = slot.launches === 0;
  slot.launches += 1;
  const launch = {
    slot: slot.index,
    workers: table.desired,
    release: program.revive(release, slot.failures.inARow < options.restart.maxFailures),
    arguments: nodeArguments,
    watchdog,
    printsBootError: bootErrors.mayPrint(slot.index, release.generation),
    keepsBack: nodeArguments.preloads ? whatIsKeptBack(bootLogs, slot.index, isFirst) : undefined,
  };
  const worker = forkWorker(launch, (told) => post({ ...told, worker }));
  worker.printsBootError = launch.printsBootError;
  // Where a debugger may hold it up, time means nothing.
  if (mayBeDebugged()) worker.debugged = true;
  else worker.after(readyTimeoutMs, () => post({ type: 'ready-overdue', worker }));
  return worker;
}
