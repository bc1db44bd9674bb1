import { existsSync } from 'node:fs';
import { besideThis, LEAVE_OUT_OF_BUNDLE } from '../../contract/process/own-file.js';

/** The program of a thread. */
export const THREAD_PROGRAM = besideThis('dist/programs/offload-thread.js') ?? 'offload-thread.js';

/** Why there can be no threads; `undefined` if their program exists. */
export function missingThreadProgram(): string | undefined {
  return existsSync(THREAD_PROGRAM)
    ? undefined
    : `${LEAVE_OUT_OF_BUNDLE}, or set CLUSTER_OFFLOAD=inline`;
}
