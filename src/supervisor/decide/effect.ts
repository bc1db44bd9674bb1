import type { ClusterEventName, ClusterEventMap } from '../../contract/events/index.js';
import type { PrimaryMessage } from '../../contract/ipc/index.js';
import type { ReloadResult, RestartResult } from '../../contract/snapshot/index.js';
import type { Requester, Served, Timer, WorkerId } from './cluster-state.js';
import type { Release } from '../processes/release.js';

/** What is to be done: the interpreter does it, in this order, and decides nothing. */
export type Effect =
  | {
      readonly type: 'fork';
      readonly worker: WorkerId;
      readonly slot: number;
      readonly release: Release;
      /** A release whose directory is gone may come back: it is waited for. */
      readonly patient: boolean;
      /** Workers there are to be. */
      readonly workers: number;
      readonly printsBootError: boolean;
    }
  | { readonly type: 'send'; readonly worker: WorkerId; readonly message: PrimaryMessage }
  | { readonly type: 'kill'; readonly worker: WorkerId; readonly signal: NodeJS.Signals }
  /** The process does not end: `exited` tells as much, and nobody waits for it. */
  | { readonly type: 'abandon'; readonly worker: WorkerId }
  /** End its open connections now; where it cannot be told, end the process. */
  | { readonly type: 'force'; readonly worker: WorkerId }
  /** Replaces a timer of the same kind for the same worker or slot. */
  | { readonly type: 'arm'; readonly timer: Timer; readonly ms: number }
  | { readonly type: 'disarm'; readonly timer: Timer }
  /** It serves from now on. */
  | { readonly type: 'joined'; readonly worker: WorkerId }
  /** It has exited. */
  | { readonly type: 'gone'; readonly worker: WorkerId }
  | Emit
  | { readonly type: 'answer'; readonly requester: Requester; readonly answer: Answer }
  /**
   * Find out what the workers of a reload are to run, or whether the files of an earlier release
   * are still there; `program-found` tells.
   */
  | { readonly type: 'find-program'; readonly earlier?: Release | undefined }
  | { readonly type: 'close-sockets' }
  /** Closes the acceptors of node:cluster. The event `acceptors-closed` follows. */
  | { readonly type: 'close-acceptors' }
  /** The cluster has started. */
  | { readonly type: 'serving'; readonly served: Served }
  | { readonly type: 'end'; readonly exitCode: number };

/** The answer to a request. */
export type Answer =
  | { readonly type: 'reloaded'; readonly result: ReloadResult }
  | { readonly type: 'restarted'; readonly result: RestartResult }
  /** The shell adds a snapshot of the cluster. */
  | { readonly type: 'scaled' }
  /** There would be nothing to listen on. */
  | { readonly type: 'scale-refused'; readonly error: Error };

/** An event of the cluster; the interpreter puts the identity of the worker in its place. */
export type Emit = {
  [N in ClusterEventName]: {
    readonly type: 'emit';
    readonly name: N;
    readonly event: WithIds<ClusterEventMap[N]>;
  };
}[ClusterEventName];

export type WithIds<Event> = {
  [K in keyof Event]: K extends 'worker' ? WorkerId | Extract<Event[K], undefined> : Event[K];
};
