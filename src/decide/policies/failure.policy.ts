import type { FailureCause, WorkerState } from '../../contract/snapshot/types.js';

/** How a process ended, as `waitpid` reports it. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The facts that the primary knows besides the exit. */
export interface Circumstances {
  readonly state: WorkerState;
  /** Whether the out-of-memory killer has killed a process of this control group since the last exit. */
  readonly oomKill: boolean;
  /** Whether the worker had reported a fatal error. If so, an abort does not mean that memory ran out. */
  readonly explained: boolean;
}

/** Signals caused by a fault of the process itself. */
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

/** Why a worker failed. For workers that were neither asked to leave nor killed by the primary. */
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

/** Describes how a process ended, with a hint for the operator. */
export function describeExit({ code, signal }: ProcessExit, cause: FailureCause): string {
  if (signal === 'SIGKILL') {
    return cause === 'oom'
      ? 'killed by SIGKILL: its control group reached the memory limit (out-of-memory killer)'
      : 'killed by SIGKILL (manually, or by the out-of-memory killer: see dmesg)';
  }
  if (cause === 'oom') {
    return `aborted${signal ? ` by ${signal}` : ''}: V8 ran out of memory, or native code failed (see its output above)`;
  }
  if (signal === 'SIGABRT') return 'aborted by SIGABRT';
  if (signal !== null) return `killed by ${signal}`;
  return code === null ? 'the process could not be started' : `exited with code ${code}`;
}

export interface FailureHistory {
  /** The number of failures since a worker last lived for {@link STABLE_AFTER_MS}. The backoff grows with it. */
  readonly inARow: number;
  /** The number of failures of the app itself since a worker lived for {@link RECOVERY_MS}. */
  readonly shortLives: number;
  readonly wasReady: boolean;
  /** Whether the slot is in a crash loop. A worker that lives for {@link RECOVERY_MS} ends it. */
  readonly degraded: boolean;
}

export const NO_FAILURES: FailureHistory = {
  inARow: 0,
  shortLives: 0,
  wasReady: false,
  degraded: false,
};

export interface Failure {
  readonly cause: FailureCause;
  /** The time from ready to the worker's end, in ms; `undefined` if the worker was never ready. */
  readonly livedMs: number | undefined;
  /** Whether the process could be started. Default true. */
  readonly started?: boolean;
}

export function recordFailure(
  history: FailureHistory,
  { cause, livedMs, started = true }: Failure,
): FailureHistory {
  const recovered = livedMs !== undefined && livedMs >= RECOVERY_MS;
  const before = recovered ? 0 : history.shortLives;
  // A kill from outside, or a lack of descriptors or memory, is not the app's fault and is not counted.
  const shortLives = cause === 'killed' || !started ? before : before + 1;
  const stable = livedMs !== undefined && livedMs >= STABLE_AFTER_MS;
  return {
    inARow: stable ? 0 : history.inARow + 1,
    shortLives,
    wasReady: livedMs !== undefined,
    degraded: shortLives >= MAX_FAILURES,
  };
}

/**
 * The delay before the slot's next worker, in ms. If the last worker was stable, the delay is 0.
 * Otherwise it is an exponential backoff with jitter. The backoff stays short if the last worker
 * was ready, because the app serves between two failures. If the last worker was never ready, the
 * backoff grows to {@link MAX_BACKOFF_MS}.
 *
 * @param random 0..1, spreads slots that failed together.
 */
export function restartDelayMs({ inARow, wasReady }: FailureHistory, random: number): number {
  if (inARow === 0) return 0;
  const longestMs = wasReady ? QUICK_START_MS : MAX_BACKOFF_MS;
  const backoff = BACKOFF_MS * BACKOFF_FACTOR ** (inARow - 1);
  return Math.min(Math.min(backoff, longestMs) * (1 + JITTER_RATIO * (2 * random - 1)), longestMs);
}

const BACKOFF_FACTOR = 2;

/** A delay varies at random by up to this ratio. */
const JITTER_RATIO = 0.2;

/** The maximum delay after a worker that was ready. */
const QUICK_START_MS = 1_000;

/** The delay after the first failure. Short, because most failures do not repeat. */
const BACKOFF_MS = 100;

/** The maximum delay. Long enough to limit the CPU use of a failing slot, short enough to recover soon after a fix. */
export const MAX_BACKOFF_MS = 15_000;

/** A worker that lived this long is restarted immediately. A faulty app usually fails sooner. */
const STABLE_AFTER_MS = 30_000;

/** Longer than {@link STABLE_AFTER_MS}, so that workers that always fail just after that time still count as a crash loop. */
export const RECOVERY_MS = 2 * STABLE_AFTER_MS;

/** This many failures make a crash loop. Fewer may be coincidence: the first four take only 1.5 s of backoff. */
export const MAX_FAILURES = 5;
