import type { FailureCause, WorkerState } from '../../../contract/snapshot/index.js';

/** How a process ended, as `waitpid` tells. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The facts that the primary has in addition to the exit itself. */
export interface Circumstances {
  /** The state it left. */
  readonly state: WorkerState;
  /** The kernel has killed a process of this memory group since the last exit. */
  readonly oomKill: boolean;
  /** It had reported an error that ends it: an abort is by its own hand, not for want of memory. */
  readonly explained: boolean;
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

/** 128 + SIGABRT: how a shell or a wrapper passes on an abort. */
const ABORT_EXIT_CODE = 134;

/** Why a worker failed that nobody had asked to leave and the primary had not killed. */
export function classifyFailure(exit: ProcessExit, known: Circumstances): FailureCause {
  const aborted = exit.signal === 'SIGABRT' || exit.code === ABORT_EXIT_CODE;
  // V8 aborts when its heap is full, and writes why to a stream that is not the primary's to read.
  if (aborted && !known.explained) return 'oom';
  if (exit.signal === 'SIGKILL' && known.oomKill) return 'oom';
  // Asked to leave before anything of ours could take the request.
  if (known.state === 'starting') return exit.signal === 'SIGTERM' ? 'killed' : 'boot';
  if (exit.signal !== null) return FAULT_SIGNALS.has(exit.signal) ? 'crash' : 'killed';
  return exit.code === 0 ? 'exit' : 'crash';
}

/** How a process ended, in words, with the hint that its operator needs. */
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
