import type { ErrorReport } from '../../contract/errors/error-report.js';
import type { Worker } from '../cluster-state.js';
import type { Step } from '../step.js';

/** Maximum of remembered errors; the oldest are forgotten. An app may put a number into each message. */
const MAX_ERRORS = 100;

/**
 * The errors that keep workers from becoming ready. Each error is printed in full only once, even
 * if many workers fail with it: one worker at a time may print its error, and no worker prints an
 * error that was printed before.
 */
export interface BootErrors {
  /** Whether a worker that may print its error is still starting. */
  readonly awaited: boolean;
  readonly generation: number;
  readonly reported: readonly string[];
  readonly printed: readonly string[];
  /** The last error of each slot, and how often the slot has failed. */
  readonly lastOf: Readonly<Record<number, { readonly key: string; readonly times: number }>>;
}

export const NO_BOOT_ERRORS: BootErrors = {
  awaited: false,
  generation: 0,
  reported: [],
  printed: [],
  lastOf: {},
};

/** Whether the next worker of a slot may print its error. Only one worker at a time may print. */
export function mayPrintBootError(step: Step, slot: number, generation: number): boolean {
  // A new reload is a new attempt, so its errors are printed again.
  if (generation > step.state.bootErrors.generation) {
    step.set({ bootErrors: { ...NO_BOOT_ERRORS, generation } });
  }
  const { bootErrors } = step.state;
  const { printed, awaited } = bootErrors;
  const last = bootErrors.lastOf[slot];
  if (last === undefined ? printed.length > 0 : printed.includes(last.key)) return false;
  // The worker that may print could be stuck, so a slot that has failed twice does not wait for it.
  if (awaited && (last?.times ?? 0) < 2) return false;
  step.set({ bootErrors: { ...bootErrors, awaited: true } });
  return true;
}

/** Forgets all errors because a worker became ready, so that later errors are printed again. */
export function forgetBootErrors(step: Step): void {
  const { generation } = step.state.bootErrors;
  step.set({ bootErrors: { ...NO_BOOT_ERRORS, generation } });
}

/** Notes and returns the error of a worker that never was ready. A repeated error has no stack. */
export function noteBootError(
  step: Step,
  { slot, error, printsBootError }: Worker,
): ErrorReport | null {
  let { bootErrors } = step.state;
  if (printsBootError) bootErrors = { ...bootErrors, awaited: false };
  if (error === null) {
    step.set({ bootErrors });
    return null;
  }
  const { name, message, code } = error;
  const key = `${name}: ${message}`;
  const { reported, printed, lastOf } = bootErrors;
  const isNew = !reported.includes(key);
  step.set({
    bootErrors: {
      ...bootErrors,
      lastOf: { ...lastOf, [slot]: { key, times: (lastOf[slot]?.times ?? 0) + 1 } },
      printed: printsBootError ? remember(printed, key) : printed,
      reported: remember(reported, key),
    },
  });
  return isNew ? error : { name, message, code, repeated: true };
}

function remember(keys: readonly string[], key: string): readonly string[] {
  return keys.includes(key) ? keys : [...keys, key].slice(-MAX_ERRORS);
}
