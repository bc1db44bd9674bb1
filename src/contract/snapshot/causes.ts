export const FAILURE_CAUSES = ['boot', 'crash', 'exit', 'oom', 'hang', 'memory', 'killed'] as const;

/**
 * Why a worker failed.
 *
 * - `boot`: it never became ready. `crash`: an error or a signal of its own.
 * - `exit`: it ended itself with code 0. `hang`: it stopped answering.
 * - `oom`: V8 or the kernel ran out of memory for it. `memory`: it grew over a
 *   limit of the `memory` options.
 * - `killed`: a signal from outside.
 */
export type FailureCause = (typeof FAILURE_CAUSES)[number];

/** Why a serving worker is replaced. The new worker is ready before the old one leaves. */
export type ReplaceCause = 'reload' | 'recycle' | 'memory' | 'restart';

/** Why a worker was asked to leave. `signal` = it received SIGTERM itself. */
export type RetireCause = ReplaceCause | 'scale' | 'shutdown' | 'signal';

/** The reason in the answers to all requests during a shutdown. */
export const SHUTTING_DOWN = 'the cluster is shutting down';

export const RELOAD_OUTCOMES = ['completed', 'aborted', 'reverted'] as const;

/**
 * How a reload ended: `completed` (every worker is of the new generation), `aborted` (a new worker
 * failed, and the previous release keeps serving) or `reverted` (all workers were replaced, but one
 * failed while the new release was observed, and the cluster went back to the previous release).
 */
export type ReloadOutcome = (typeof RELOAD_OUTCOMES)[number];
