import type { ClusterEventName, ClusterEventMap } from '../contract/log/events.js';
import type { PrimaryMessage } from '../contract/messages.js';
import type { ReloadResult, RestartResult } from '../contract/snapshot/types.js';
import type { Release, Requester, Served, Timer, WorkerId } from './cluster-state.js';

/** An action that the core decided on. The supervisor carries out effects in order. */
export type Effect =
  | {
      readonly type: 'fork';
      readonly worker: WorkerId;
      readonly slot: number;
      readonly release: Release;
      /** The number of workers that share the machine. */
      readonly workers: number;
      readonly printsBootError: boolean;
    }
  | { readonly type: 'send'; readonly worker: WorkerId; readonly message: PrimaryMessage }
  | { readonly type: 'kill'; readonly worker: WorkerId; readonly signal: NodeJS.Signals }
  /** The process does not end after SIGKILL. Report it as exited, so that nothing waits for it. */
  | { readonly type: 'abandon'; readonly worker: WorkerId }
  /** Make the worker end its connections now. If its channel is closed, kill the process. */
  | { readonly type: 'force'; readonly worker: WorkerId }
  /** Start a timer. It replaces a timer of the same type for the same worker or slot. */
  | { readonly type: 'arm'; readonly timer: Timer; readonly ms: number }
  | { readonly type: 'disarm'; readonly timer: Timer }
  /** The worker serves from now on. */
  | { readonly type: 'joined'; readonly worker: WorkerId }
  | { readonly type: 'gone'; readonly worker: WorkerId }
  | Emit
  | { readonly type: 'answer'; readonly requester: Requester; readonly answer: Answer }
  /**
   * Find the program for the workers of a reload, or check whether the files of an earlier release
   * still exist. The event `program-found` follows.
   */
  | { readonly type: 'find-program'; readonly earlier?: Release | undefined }
  | { readonly type: 'close-sockets' }
  /** Close the acceptors of node:cluster. The event `acceptors-closed` follows. */
  | { readonly type: 'close-acceptors' }
  | { readonly type: 'serving'; readonly served: Served }
  | { readonly type: 'end'; readonly exitCode: number };

export type Answer =
  | { readonly type: 'reloaded'; readonly result: ReloadResult }
  | { readonly type: 'restarted'; readonly result: RestartResult }
  /** The supervisor adds a snapshot of the cluster to the answer. */
  | { readonly type: 'scaled' }
  /** The new workers would have no socket to listen on. */
  | { readonly type: 'scale-refused'; readonly error: Error };

/** A cluster event with the worker's id, which the supervisor replaces with a `WorkerIdentity`. */
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
