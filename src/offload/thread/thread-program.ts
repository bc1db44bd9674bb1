import { existsSync } from 'node:fs';
import { besideThis, LEAVE_OUT_OF_BUNDLE } from '../../contract/process/own-file.js';

/** The program of a thread. */
export const THREAD_PROGRAM = besideThis('dist/programs/offload-thread.js') ?? 'offload-thread.js';

/** The reason why threads cannot start; none if their program exists. */
export function missingThreadProgram(): string[] {
  return existsSync(THREAD_PROGRAM)
    ? []
    : [`${LEAVE_OUT_OF_BUNDLE}, or set CLUSTER_OFFLOAD=inline`];
}
