import type { FailureCause, WorkerState } from '../../contract/snapshot/index.js';

/** How a process ended, as `waitpid` reports it. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The facts that the primary has in addition to the exit itself. */
export interface Circumstances {
  readonly state: WorkerState;
  /** Whether the out-of-memory killer has killed a process of this control group since the last exit. */
  readonly oomKill: boolean;
  /** Whether the worker had reported a fatal error, so that an abort does not mean a lack of memory. */
  readonly explained: boolean;
}

/** Signals that a process gets by its own fault. */
const FAULT_SIGNALS: ReadonlySet<string> = new Set([
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGSEGV',
  'SIGSYS',
  'SIGTRAP',
]);

/** The exit code 128 + SIGABRT, with which a shell or a wrapper reports that its child aborted. */
const ABORT_EXIT_CODE = 134;

/** Why a worker failed that was neither asked to leave nor killed by the primary. */
export function classifyFailure(exit: ProcessExit, known: Circumstances): FailureCause {
  const aborted = exit.signal === 'SIGABRT' || exit.code === ABORT_EXIT_CODE;
  // V8 aborts when its heap is full. The primary cannot read V8's message, so it assumes this reason.
  if (aborted && !known.explained) return 'oom';
  if (exit.signal === 'SIGKILL' && known.oomKill) return 'oom';
  // SIGTERM ends a worker that has not installed its handler yet. That is not a failed boot.
  if (known.state === 'starting') return exit.signal === 'SIGTERM' ? 'killed' : 'boot';
  if (exit.signal !== null) return FAULT_SIGNALS.has(exit.signal) ? 'crash' : 'killed';
  return exit.code === 0 ? 'exit' : 'crash';
}

/** Describes how a process ended, with a hint for its operator. */
export function describeExit({ code, signal }: ProcessExit, cause: FailureCause): string {
  if (signal === 'SIGKILL') {
    return cause === 'oom'
      ? 'killed by SIGKILL: the memory limit of its control group was reached (out-of-memory killer)'
      : 'killed by SIGKILL (by hand, or by the out-of-memory killer: see dmesg)';
  }
  if (cause === 'oom') {
    return `aborted${signal ? ` by ${signal}` : ''}: V8 ran out of memory, or native code failed (see its output above)`;
  }
  if (signal === 'SIGABRT') return 'aborted by SIGABRT (process.abort())';
  if (signal !== null) return `killed by ${signal}`;
  return code === null ? 'it could not be started' : `exited with code ${code}`;
}
