import type { ErrorReport } from '../../contract/errors/error-report.js';
import type { Worker, WorkerId } from '../cluster-state.js';
import type { Step } from '../step.js';

/** Maximum of remembered errors; the oldest are forgotten. An app may put a number into each message. */
const MAX_ERRORS = 100;

/**
 * The errors that keep the workers of a generation from becoming ready. One worker may print its
 * error. The log has each error of the others, with its stack the first time.
 */
export interface BootErrors {
  readonly generation: number;
  /** The worker that may print its error, or has printed it. */
  readonly printer: WorkerId | undefined;
  readonly reported: readonly string[];
}

/** Whether a new worker may print the error that keeps it from becoming ready. */
export function mayPrintBootError(step: Step, id: WorkerId, generation: number): boolean {
  // A new reload is a new attempt, so its errors are printed again.
  if (generation > step.state.bootErrors.generation) forgetBootErrors(step, generation);
  const { bootErrors } = step.state;
  if (bootErrors.printer !== undefined) return false;
  step.set({ bootErrors: { ...bootErrors, printer: id } });
  return true;
}

/** Forgets all errors because a worker became ready, so that later errors are printed again. */
export function forgetBootErrors(step: Step, generation = step.state.bootErrors.generation): void {
  step.set({ bootErrors: { generation, printer: undefined, reported: [] } });
}

/** Notes and returns the error of a worker that never was ready. A repeated error has no stack. */
export function noteBootError(step: Step, { id, error }: Worker): ErrorReport | null {
  const { bootErrors } = step.state;
  if (error === null) {
    if (bootErrors.printer === id) step.set({ bootErrors: { ...bootErrors, printer: undefined } });
    return null;
  }
  const { name, message, code } = error;
  const key = `${name}: ${message}`;
  if (bootErrors.reported.includes(key)) return { name, message, code, repeated: true };
  const reported = [...bootErrors.reported, key].slice(-MAX_ERRORS);
  step.set({ bootErrors: { ...bootErrors, reported } });
  return error;
}
