import type { FailureCause, WorkerState } from '../../snapshot/index.js';

/** How a process ended, as `waitpid` tells. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Signals a process raises by its own fault. */
const FAULT_SIGNALS: ReadonlySet<string> = new Set([
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGSEGV',
  'SIGSYS',
  'SIGTRAP',
]);

/** Why a worker failed that nobody had asked to leave. */
export function classifyFailure(
  state: WorkerState,
  exit: ProcessExit,
  killedAsHung: boolean,
): FailureCause {
  if (killedAsHung) return 'hang';
  if (state === 'starting') return 'boot';
  if (exit.signal !== null) return FAULT_SIGNALS.has(exit.signal) ? 'crash' : 'killed';
  return exit.code === 0 ? 'exit' : 'crash';
}

/** How a process ended, in words, with the hint that its operator needs. */
export function describeExit({ code, signal }: ProcessExit): string {
  if (signal === 'SIGKILL') {
    return 'killed by SIGKILL (by hand, or by the out-of-memory killer: see dmesg)';
  }
  if (signal === 'SIGABRT') {
    return 'aborted by SIGABRT (process.abort(), or V8 ran out of memory: see its output above)';
  }
  if (signal !== null) return `killed by ${signal}`;
  return code === null ? 'it could not be started' : `exited with code ${code}`;
}
