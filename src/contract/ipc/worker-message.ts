import type { BlockReport, StackReport } from './block-report.js';
import type { ErrorReport } from './error-report.js';
import type { Fingerprint } from './fingerprint.js';
import type { PassedConnection } from './passed-connection.js';
import type { ClusterSnapshot, HealthVerdict, WorkerStats } from '../snapshot/index.js';

/** The result of a drain: what it had to end by force. */
export interface DrainReport {
  readonly durationMs: number;
  /** Connections that the kernel had accepted and this process had not. They were reset with their socket. */
  readonly unacceptedConnections: number;
  /** Connections destroyed at the deadline. */
  readonly destroyedConnections: number;
  /** Requests that were in flight on them. */
  readonly abortedRequests: number;
  /** WebSockets among the connections: they were told to close and did not. */
  readonly destroyedWebSockets: number;
  /** Why `app.close()` did not end well. */
  readonly hookError: string | null;
}

/** The load of a worker since its last report. */
export interface LoadReport {
  /** Responses finished. */
  readonly requests: number;
  /** Connections with finished responses that are still open, and whose clients could be asked to connect again. */
  readonly connections: number;
  /** Share of the time that the event loop was busy, 0..1. */
  readonly utilization: number;
}

/** The step of its start in which a worker failed. */
export type BootPhase = 'create' | 'init' | 'listen';

/**
 * The messages from a worker to the primary. Node's channel is shared with the app and its
 * libraries, so every message carries our name and version; other messages belong to somebody else
 * or are wrong, and are dropped. Optional fields may be missing in the messages of another version.
 */
export type WorkerMessage =
  /** The app is initialised; may I have the socket? */
  | { readonly type: 'listen-request' }
  /** Accepting. `endpoints`: paths the module serves. */
  | {
      readonly type: 'ready';
      /** `null` without an HTTP server. */
      readonly url?: string | null | undefined;
      readonly endpoints?: readonly string[] | undefined;
      /** Workers that must be ready for the cluster to be up. */
      readonly minReady?: ClusterSnapshot['minReady'] | undefined;
      /** The worker has threads, and will answer `verify`. */
      readonly verifiable?: boolean | undefined;
    }
  /** The app could not be brought up; the process ends next. */
  | { readonly type: 'boot-failed'; readonly phase: BootPhase; readonly error: ErrorReport }
  /** An uncaught error. The worker drains and ends, or, with `abort`, ends at once. */
  | { readonly type: 'fatal'; readonly error: ErrorReport; readonly abort: boolean }
  /**
   * The requests in progress, sent before `fatal` and before any other end that the worker or its
   * watchdog sees. With `certain` the list is exact, and may be empty.
   */
  | {
      readonly type: 'suspects';
      readonly certain: boolean;
      readonly suspects: readonly Fingerprint[];
    }
  /** Sent while requests are watched: one begins as number `n`, others were answered. */
  | {
      readonly type: 'flight';
      readonly n: number;
      readonly began?: Fingerprint | undefined;
      readonly ended: readonly number[];
    }
  /** A request under quarantine was given to the app for a trial, or has done no harm. */
  | { readonly type: 'trial'; readonly id: number; readonly lived: boolean }
  /** From the watchdog, over a pipe of its own: the event loop is blocked. */
  | ({ readonly type: 'blocked' } & BlockReport)
  /** The event loop that was blocked goes on. */
  | { readonly type: 'resumed' }
  /** From the watchdog: a profile of the block could not be made. */
  | { readonly type: 'unprofiled'; readonly problem: string }
  /** From the watchdog: answers the request `stack`. */
  | ({ readonly type: 'stack'; readonly id: number } & StackReport)
  /** Answers `check`. */
  | ({ readonly type: 'checked'; readonly id: number } & HealthVerdict)
  /** Answers `verify` with the error, if there is one. */
  | { readonly type: 'verified'; readonly error: ErrorReport | null }
  | { readonly type: 'reload-request'; readonly id: number }
  | { readonly type: 'scale-request'; readonly id: number; readonly workers: number }
  | { readonly type: 'restart-request'; readonly id: number; readonly slot: number }
  /** Something in the worker cannot be stopped or repaired: another worker should take its place. */
  | { readonly type: 'replace-request'; readonly reason: string }
  /** The worker has jobs that only one worker may run: it wants to be told when it leads. */
  | { readonly type: 'lead-request' }
  /** Answers `lead`. */
  | { readonly type: 'leads'; readonly seq: number }
  /** The worker leads no more, and begins no job that is due after `at` (the machine's clock). */
  | { readonly type: 'resigned'; readonly at: number }
  /** The running jobs that only one worker may run. `done`: a job that has begun, and is to run once. */
  | {
      readonly type: 'jobs';
      readonly running: readonly string[];
      readonly done?: string | undefined;
    }
  /** Something the operator should know; one line. */
  | { readonly type: 'warning'; readonly message: string }
  | {
      readonly type: 'pong';
      readonly seq?: number | undefined;
      readonly stats: Partial<WorkerStats>;
      readonly debugged?: boolean | undefined;
    }
  /** Answers `report-load`. */
  | ({ readonly type: 'load' } & LoadReport)
  /** The worker was told by a signal of its own to leave. */
  | {
      readonly type: 'leaving';
      /** Its app closes itself, without a signal. */
      readonly closed?: boolean | undefined;
    }
  /** The worker takes connections that are passed to this name. */
  | { readonly type: 'takes'; readonly name: string }
  /**
   * The connection that comes with this message is for the worker that has the name `to`. If none
   * has it, the connection goes back to the sender under the name `from`.
   */
  | ({ readonly type: 'pass'; readonly from: string } & PassedConnection)
  | { readonly type: 'drained'; readonly report: DrainReport }
  | { readonly type: 'snapshot-request'; readonly id: number; readonly stats: Partial<WorkerStats> }
  /** The metrics of all workers are wanted; its own come with the question. */
  | {
      readonly type: 'collect-request';
      readonly id: number;
      readonly stats: Partial<WorkerStats>;
      /** Time since `body` was serialised: above 0 where that takes too long now. */
      readonly ageMs: number;
      readonly body: string;
    }
  /** Metrics of this worker: `asked` if `collect` has asked for them, else the worker sends them unasked. */
  | {
      readonly type: 'metrics';
      readonly asked: boolean;
      readonly stats: Partial<WorkerStats>;
      readonly ageMs: number;
      readonly body: string;
    }
  /** Where is the hub? It is started for the first who asks. */
  | { readonly type: 'hub-request'; readonly id: number }
  /** From now on the worker wants to be told only of these events of the cluster. */
  | { readonly type: 'subscribe'; readonly events: readonly string[] }
  /** The `count` bodies of a `fold`, merged into one. */
  | {
      readonly type: 'folded';
      readonly epoch: number;
      readonly count: number;
      readonly body: string;
    };

/** The report of a worker to a doctor, which is its primary: the app is up, with these findings. */
export interface ExaminationMessage {
  readonly type: 'examined';
  /** Workers that the findings are about. */
  readonly workers: number;
  readonly findings: readonly FindingReport[];
  /** Names of findings that are not shown. */
  readonly ignored: readonly string[];
}

/** See `findings/finding.ts`. */
export type FindingReport = Readonly<
  Record<'name' | 'level' | 'where' | 'problem' | 'remedy' | 'docs', string>
>;
