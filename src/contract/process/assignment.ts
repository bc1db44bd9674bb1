import type { WorkerIdentity } from '../snapshot/types.js';

/** Environment variable that the primary sets for a worker, with the worker's slot and the primary's pid. */
export const WORKER_VARIABLE = 'NESTJS_CLUSTER_WORKER';

/** The content of {@link WORKER_VARIABLE}, as JSON. */
export interface WorkerAssignment {
  readonly slot: number;
  readonly generation: number;
  /** The number of workers that share the machine. */
  readonly workers: number;
  readonly primaryPid: number;
  /** The file descriptor on which the worker's watchdog reports. */
  readonly reportTo: number | undefined;
  /** How many leading Node arguments (`execArgv`) belong to this package, not to the app. */
  readonly ownArguments: number;
  /** Whether the worker prints the error if its start fails. If not, the primary logs the error. */
  readonly printsBootError: boolean;
  /** The resolved directory of Node's compile cache; `undefined` without one. */
  readonly compileCache?: string | undefined;
  /** Whether Nest logs only warnings and errors until the worker is ready. */
  readonly quiet?: boolean | undefined;
}

/** The assignment with the worker's own identity. */
export type OwnAssignment = WorkerAssignment & { readonly identity: WorkerIdentity };

/**
 * Reads the assignment from the environment; `undefined` without a primary. A child process of a
 * worker inherits the variable too. An invalid value is ignored, because a user may have exported
 * the variable.
 */
export function readAssignment(env: NodeJS.ProcessEnv): WorkerAssignment | undefined {
  try {
    const assigned = JSON.parse(env[WORKER_VARIABLE] ?? '') as WorkerAssignment | null;
    const numbers = [assigned?.slot, assigned?.generation, assigned?.primaryPid];
    return numbers.every(Number.isInteger) ? (assigned ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}
