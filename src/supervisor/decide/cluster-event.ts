import type { DrainReport, ErrorReport, WorkerMessage } from '../../contract/ipc/index.js';
import type { ProgramPaths } from '../processes/release.js';
import type { ProcessExit } from './policies/exit-cause.policy.js';
import type { Requester, Timer, WorkerId, WorkerTimer } from './cluster-state.js';

/** An event, with everything that the decision needs to know of the world. */
export type ClusterEvent =
  | { readonly type: 'begin' }
  | { readonly type: 'worker'; readonly worker: WorkerId; readonly event: WorkerEvent }
  | { readonly type: 'due'; readonly timer: Timer }
  | {
      readonly type: 'heartbeat-due';
      /** The primary's own, 0..1, over the last interval. */
      readonly eventLoopUtilization: number;
    }
  | { readonly type: 'upkeep-due'; readonly readings: ReadonlyMap<WorkerId, Reading> }
  | { readonly type: 'reload'; readonly reason: string; readonly requester: Requester }
  /** Answers the effect `find-program`: where its names lead now, or why they lead nowhere. */
  | { readonly type: 'program-found'; readonly program: ProgramPaths | Error }
  | {
      readonly type: 'scale';
      readonly workers: number;
      readonly reason: string;
      readonly requester: Requester;
      /** Why as many workers would have nothing to listen on. */
      readonly error?: Error | undefined;
    }
  | {
      readonly type: 'restart';
      readonly slot: number;
      readonly reason: string;
      readonly requester: Requester;
      /** The path to which the old worker sends a heap snapshot after its last request. */
      readonly snapshotTo?: string | undefined;
    }
  | {
      readonly type: 'stop';
      readonly reason: string;
      /** `undefined` of a call. */
      readonly signal: { readonly name: NodeJS.Signals; readonly number: number } | undefined;
    }
  | { readonly type: 'acceptors-closed' };

/** What is known of a worker from outside. */
export interface Reading {
  readonly residentBytes: number;
  /** Answered since it started. */
  readonly requests: number;
}

/** What happens to a worker, or is said by it. */
export type WorkerEvent =
  | {
      readonly type: 'exited';
      readonly exit: ProcessExit;
      /** The kernel has killed for want of memory since the last exit. */
      readonly oomKill: boolean;
      /** ISO 8601, UTC. */
      readonly at: string;
    }
  | { readonly type: 'channel-error'; readonly error: ErrorReport }
  /** A read was not a message, or a write failed. */
  | { readonly type: 'channel-broken'; readonly error: ErrorReport }
  /** Its first word is of another version of the protocol. */
  | { readonly type: 'foreign-version'; readonly version: number }
  | (Said<'ready'> & { readonly residentBytes: number })
  | Said<'boot-failed'>
  | Said<'fatal'>
  | Said<'leaving'>
  | Said<'pong'>
  | Said<'blocked'>
  | Said<'resumed'>
  | Said<'checked'>
  | Said<'verified'>
  | Said<'replace-request'>
  | Said<'lead-request'>
  | Said<'leads'>
  | Said<'resigned'>
  | Said<'jobs'>
  | { readonly type: 'drained'; readonly report: DrainReport }
  | { readonly type: WorkerTimer };

type Said<T extends WorkerMessage['type']> = WorkerMessage & { readonly type: T };

export type WorkerEventOf<T extends WorkerEvent['type']> = Extract<WorkerEvent, { type: T }>;
