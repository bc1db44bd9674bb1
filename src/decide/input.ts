import type { DrainReport, WorkerMessage } from '../contract/messages.js';
import type { ErrorReport } from '../contract/errors/error-report.js';
import type { ProgramPaths, Requester, Timer, WorkerId, WorkerTimer } from './cluster-state.js';
import type { ProcessExit } from './policies/failure.policy.js';

/** An event for the core, with all outside facts that the decision needs. */
export type ClusterEvent =
  | { readonly type: 'begin' }
  | { readonly type: 'worker'; readonly worker: WorkerId; readonly event: WorkerEvent }
  | { readonly type: 'due'; readonly timer: Timer }
  | {
      readonly type: 'heartbeat-due';
      /** The primary's own event loop utilization over the last interval, 0..1. */
      readonly eventLoopUtilization: number;
    }
  | { readonly type: 'upkeep-due'; readonly readings: ReadonlyMap<WorkerId, Reading> }
  | { readonly type: 'reload'; readonly reason: string; readonly requester: Requester }
  /** Answers the effect `find-program`: the paths of the program, or why it cannot be found. */
  | { readonly type: 'program-found'; readonly program: ProgramPaths | Error }
  | {
      readonly type: 'scale';
      readonly workers: number;
      readonly reason: string;
      readonly requester: Requester;
      /** The error if the new workers would have no socket to listen on. */
      readonly error?: Error | undefined;
    }
  | {
      readonly type: 'restart';
      readonly slot: number;
      readonly reason: string;
      readonly requester: Requester;
    }
  | {
      readonly type: 'stop';
      readonly reason: string;
      /** The signal that asked for the stop; `undefined` if a function call asked for it. */
      readonly signal: { readonly name: NodeJS.Signals; readonly number: number } | undefined;
    }
  | { readonly type: 'acceptors-closed' };

export interface Reading {
  readonly residentBytes: number;
  readonly requests: number;
}

/** Something that happened to a worker, or that the worker reported. */
export type WorkerEvent =
  | {
      readonly type: 'exited';
      readonly exit: ProcessExit;
      /** Whether the out-of-memory killer has killed a process since the last exit. */
      readonly oomKill: boolean;
      /** When the primary noticed the exit: ISO 8601, UTC. */
      readonly at: string;
    }
  | { readonly type: 'channel-error'; readonly error: ErrorReport }
  /** An invalid message was read, or a write failed. */
  | { readonly type: 'channel-broken'; readonly error: ErrorReport }
  /** The worker's first message has another protocol version. */
  | { readonly type: 'foreign-version'; readonly version: number }
  | (Extract<WorkerMessage, { type: 'ready' }> & { readonly residentBytes: number })
  | Extract<WorkerMessage, { type: Reported }>
  | { readonly type: 'drained'; readonly report: DrainReport }
  | { readonly type: WorkerTimer };

/** Worker messages that reach the core unchanged. */
type Reported =
  | 'boot-failed'
  | 'fatal'
  | 'exiting'
  | 'leaving'
  | 'pong'
  | 'blocked'
  | 'resumed'
  | 'checked'
  | 'verified'
  | 'lead-request'
  | 'leads'
  | 'resigned'
  | 'job-begun';

export type WorkerEventOf<T extends WorkerEvent['type']> = Extract<WorkerEvent, { type: T }>;
