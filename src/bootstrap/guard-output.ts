import { createEventFormat } from '../contract/events/index.js';
import type { ResolvedLogOptions } from '../contract/options/index.js';
import { GuardedStream, type LostLines } from '../contract/process/guarded-stream.js';
import type { WorkerIdentity } from '../contract/snapshot/index.js';

/**
 * Keeps the process alive if its output cannot be written: if the disk is full, the terminal is
 * closed or nobody reads the pipe. Each stream later logs how many lines it has lost.
 */
export function guardOutput(log: ResolvedLogOptions, worker?: WorkerIdentity) {
  const format = createEventFormat(log);
  const guard = (stream: NodeJS.WriteStream & { fd: number }, name: string): GuardedStream =>
    GuardedStream.of(stream, (lost) => {
      const warning = { message: `${describeLoss(lost)} to ${name}`, ...(worker && { worker }) };
      return format('warning', warning, stream);
    });
  const out = guard(process.stdout, 'standard output');
  const err = guard(process.stderr, 'standard error');
  return { out, err, dropped: () => out.dropped + err.dropped };
}

function describeLoss({ lines, code, forMs }: LostLines): string {
  const what = lines === 1 ? '1 log line' : `${lines} log lines`;
  return `${what} could not be written (${code}) in the last ${Math.ceil(forMs / 1_000)} s`;
}
