import type { Recording } from '../snapshot/index.js';

/** A request that was in flight when the event loop was blocked. */
export interface BlockedRequest {
  readonly method: string;
  /** Path without the query: that may hold secrets. */
  readonly path: string;
  readonly forMs: number;
}

/** What blocks a worker's event loop, as its watchdog saw it. */
export interface BlockReport {
  /** Time that the event loop had been blocked by then. */
  readonly forMs: number;
  /** Oldest first. */
  readonly requests: readonly BlockedRequest[];
  /** JavaScript frames, innermost first; none where the inspector is not to be had. */
  readonly frames: readonly string[];
  /** File of a CPU profile of the block, once there is one. */
  readonly profile?: string | undefined;
}

/** What a worker is doing, blocked or not. */
export interface StackReport extends Omit<BlockReport, 'forMs' | 'profile'> {
  /** `null` where its event loop turns. */
  readonly blockedForMs: number | null;
  /** Whether its main thread could say so: in native code it cannot. */
  readonly answered: boolean;
}

/** What the primary asks the watchdog of a worker, one JSON object a line, over the pipe on which that reports. */
export type WatchdogRequest =
  | { readonly type: 'stack'; readonly id: number }
  /** A worker has ended: if the event loop is blocked, report that now. */
  | { readonly type: 'report-block' }
  /** `to`: unix socket that takes the recording. */
  | ({ readonly type: 'record'; readonly to: string } & Recording);
