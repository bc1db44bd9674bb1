import type { ErrorReport } from './error-report.js';
import type {
  ClusterSnapshot,
  CollectedMetrics,
  ReloadResult,
  RestartResult,
  RetireCause,
} from '../snapshot/index.js';

/** The address on which a worker listens. The primary's handle comes with this message. */
export type ListenTarget = (
  | { readonly kind: 'tcp'; readonly port: number; readonly host: string }
  | { readonly kind: 'unix'; readonly path: string }
) & {
  /** Whether systemd holds the socket too, so that the socket outlives this cluster. */
  readonly activated?: true;
};

/** The messages from the primary to a worker, in the envelope of `envelope.ts`. */
export type PrimaryMessage =
  /** Listen on the handle that comes with this message. If there is none, listen through node:cluster. */
  | { readonly type: 'listen'; readonly target: ListenTarget }
  /** The primary has no socket for the worker; `error` says why. */
  | { readonly type: 'listen-refused'; readonly error: ErrorReport }
  /** Also listen on the handle that comes with this message: the socket of a slot without a worker. */
  | { readonly type: 'adopt'; readonly slot: number }
  /** Stop listening on the socket of `slot`, because that slot has a worker again. */
  | { readonly type: 'release'; readonly slot: number }
  | { readonly type: 'ping'; readonly seq: number }
  /** Be the leader until `until`. Times are in ms of the machine's monotonic clock. */
  | {
      readonly type: 'lead';
      readonly seq: number;
      readonly until: number;
      /** Jobs that were due before this time belong to an earlier leader; `undefined` if no worker led before. */
      readonly since?: number | undefined;
      /** Names of jobs that must run only once and have already begun. */
      readonly done: readonly string[];
    }
  /** Report your load since your last report. */
  | { readonly type: 'report-load' }
  /** Ask clients that cause this share of the load (0..1) to connect again. */
  | { readonly type: 'give-away'; readonly ratio: number }
  | {
      readonly type: 'drain';
      readonly cause: RetireCause;
      /** The signal for the app's shutdown hooks. */
      readonly signal: NodeJS.Signals;
    }
  /** The primary has closed its sockets, so the workers must serve the connections that wait in the queues. */
  | { readonly type: 'released' }
  /** End open connections now. */
  | { readonly type: 'force' }
  | { readonly type: 'check'; readonly id: number }
  /** Check that a thread can load all its tasks. */
  | { readonly type: 'verify' }
  | { readonly type: 'reloaded'; readonly id: number; readonly result: ReloadResult }
  | { readonly type: 'restarted'; readonly id: number; readonly result: RestartResult }
  | { readonly type: 'scaled'; readonly id: number; readonly snapshot: ClusterSnapshot }
  /** The cluster is not scaled, because a new worker could not listen on `address`. */
  | {
      readonly type: 'scale-refused';
      readonly id: number;
      readonly address: string;
      readonly cause: ErrorReport;
    }
  | { readonly type: 'snapshot'; readonly id: number; readonly snapshot: ClusterSnapshot }
  | { readonly type: 'thread'; readonly id: number; readonly path: string }
  | { readonly type: 'thread-refused'; readonly id: number; readonly reason: string }
  | { readonly type: 'collect' }
  /** An event to which the worker has subscribed. */
  | {
      readonly type: 'event';
      readonly name: string;
      readonly event: unknown;
      /** The number of events that were left out before this event, because the worker had not read earlier events. */
      readonly missed: number;
    }
  | ({ readonly type: 'collected'; readonly id: number } & CollectedMetrics);
