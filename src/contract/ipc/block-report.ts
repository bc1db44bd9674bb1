import type { Recording } from '../snapshot/index.js';

/** A request that may have ended or blocked a worker. */
export interface BlockedRequest {
  readonly method: string;
  /** The path without the query, which may hold secrets. */
  readonly path: string;
  readonly forMs: number;
}

/** A watchdog's report of what blocks the event loop of its worker. */
export interface BlockReport {
  /** How long the event loop had been blocked at the time of the report, in ms. */
  readonly forMs: number;
  /** Requests in flight, the newest first. */
  readonly requests: readonly BlockedRequest[];
  /** JavaScript frames, innermost first; empty if the inspector is not available. */
  readonly frames: readonly string[];
}

/** The primary's requests to the watchdog of a worker: one JSON object a line, over the pipe on which the watchdog reports. */
export type WatchdogRequest =
  | { readonly type: 'stack'; readonly id: number }
  /** Make a recording, and write it to the file `to`. */
  | ({ readonly type: 'record'; readonly id: number; readonly to: string } & Recording);
