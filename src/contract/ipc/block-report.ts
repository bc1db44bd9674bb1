import type { Recording } from '../snapshot/index.js';

/** A request that was in flight when the event loop was blocked. */
export interface BlockedRequest {
  readonly method: string;
  /** The path without the query, which may hold secrets. */
  readonly path: string;
  readonly forMs: number;
}

/** A watchdog's report of what blocks the event loop of its worker. */
export interface BlockReport {
  /** How long the event loop had been blocked at the time of the report. */
  readonly forMs: number;
  /** Oldest first. */
  readonly requests: readonly BlockedRequest[];
  /** JavaScript frames, innermost first; empty if the inspector is not available. */
  readonly frames: readonly string[];
  /** File of a CPU profile of the block, once there is one. */
  readonly profile?: string | undefined;
}

/** The requests and the stack of a worker, blocked or not. */
export interface StackReport extends Omit<BlockReport, 'forMs' | 'profile'> {
  /** `null` if its event loop is not blocked. */
  readonly blockedForMs: number | null;
  /** Whether its main thread answered: it cannot while it runs native code. */
  readonly answered: boolean;
}

/** The primary's requests to the watchdog of a worker: one JSON object a line, over the pipe on which the watchdog reports. */
export type WatchdogRequest =
  | { readonly type: 'stack'; readonly id: number }
  /** A worker has ended: if the event loop is blocked, report that now. */
  | { readonly type: 'report-block' }
  /** `to`: unix socket that takes the recording. */
  | ({ readonly type: 'record'; readonly to: string } & Recording);
