import type { BlockedRequest, BlockReport, StackReport } from './block-report.js';
import type { ErrorReport } from './error-report.js';
import type { ClusterSnapshot, HealthVerdict, WorkerStats } from '../snapshot/index.js';

/** The result of a drain, with the numbers of connections and requests that were ended by force. */
export interface DrainReport {
  /** Connections destroyed at the deadline. */
  readonly destroyedConnections: number;
  /** Requests that were in flight on the destroyed connections. */
  readonly abortedRequests: number;
  /** WebSockets among the destroyed connections. They were asked to close and did not. */
  readonly destroyedWebSockets: number;
  /** Why `app.close()` failed; `null` if it did not fail. */
  readonly hookError: string | null;
}

/** The load of a worker since its last report. */
export interface LoadReport {
  /** Responses finished since the last report. */
  readonly requests: number;
  /** Number of open connections that have served a response. Their clients can be asked to connect again. */
  readonly connections: number;
  /** Share of the time that the event loop was busy, 0..1. */
  readonly utilization: number;
}

/** The step in which the start of a worker failed. */
export type BootPhase = 'create' | 'init' | 'listen';

/**
 * The messages from a worker to the primary. Node's channel is shared with the app and its
 * libraries, so every message carries the name of this package and a version. Other messages belong
 * to somebody else or are wrong, and are dropped. Optional fields may be missing in the messages of
 * another version.
 */
export type WorkerMessage =
  /** The app is initialised, and the worker asks for the socket to listen on. */
  | { readonly type: 'listen-request' }
  /** The worker accepts requests. `endpoints`: paths that the module serves. */
  | {
      readonly type: 'ready';
      /** URL of the app; `null` without an HTTP server. */
      readonly url?: string | null | undefined;
      readonly endpoints?: readonly string[] | undefined;
      /** Workers that must be ready for the cluster to be up. */
      readonly minReady?: ClusterSnapshot['minReady'] | undefined;
      /** Whether the worker has threads and will answer `verify`. */
      readonly verifiable?: boolean | undefined;
    }
  /** The app could not be started; the process ends next. */
  | { readonly type: 'boot-failed'; readonly phase: BootPhase; readonly error: ErrorReport }
  /** An uncaught error. The worker drains and ends, or, with `abort`, ends at once. */
  | {
      readonly type: 'fatal';
      readonly error: ErrorReport;
      readonly abort: boolean;
      /** The request of the error, or else the requests in flight, the newest first. */
      readonly requests: readonly BlockedRequest[];
    }
  /** Something called `process.exit()`. `requests` as with `fatal`. */
  | { readonly type: 'exiting'; readonly requests: readonly BlockedRequest[] }
  /** From the watchdog, over a pipe of its own: the event loop is blocked. */
  | ({ readonly type: 'blocked' } & BlockReport)
  /** The event loop is no longer blocked. */
  | { readonly type: 'resumed' }
  /** From the watchdog: answers the request `stack`. */
  | ({ readonly type: 'stack'; readonly id: number } & StackReport)
  /** From the watchdog: answers the request `record`. `problem`: why the file could not be written. */
  | { readonly type: 'recorded'; readonly id: number; readonly problem: string | null }
  /** Answers `check`. */
  | ({ readonly type: 'checked'; readonly id: number } & HealthVerdict)
  /** Answers `verify` with the error, if there is one. */
  | { readonly type: 'verified'; readonly error: ErrorReport | null }
  | { readonly type: 'reload-request'; readonly id: number }
  | { readonly type: 'scale-request'; readonly id: number; readonly workers: number }
  | { readonly type: 'restart-request'; readonly id: number; readonly slot: number }
  /** Something in the worker cannot be stopped or repaired: another worker should take its place. */
  | { readonly type: 'replace-request'; readonly reason: string }
  /** The worker has jobs that only one worker may run, and asks for a message when it becomes the leader. */
  | { readonly type: 'lead-request' }
  /** Answers `lead`. */
  | { readonly type: 'leads'; readonly seq: number }
  /** The worker no longer leads. It begins no job that is due after `at` (ms of the machine's clock). */
  | { readonly type: 'resigned'; readonly at: number }
  /** A job has begun that must run only once in the life of the cluster. */
  | { readonly type: 'job-begun'; readonly job: string }
  /** A warning for the operator, on one line. */
  | { readonly type: 'warning'; readonly message: string }
  | {
      readonly type: 'pong';
      readonly seq?: number | undefined;
      readonly stats: Partial<WorkerStats>;
      readonly debugged?: boolean | undefined;
    }
  /** Answers `report-load`. */
  | ({ readonly type: 'load' } & LoadReport)
  /** The worker itself received a signal to end. */
  | {
      readonly type: 'leaving';
      /** Whether the app closes itself, without a signal. */
      readonly closed?: boolean | undefined;
    }
  | { readonly type: 'drained'; readonly report: DrainReport }
  | { readonly type: 'snapshot-request'; readonly id: number; readonly stats: Partial<WorkerStats> }
  /** Asks for the metrics of all workers. The metrics of the asking worker come with the request. */
  | {
      readonly type: 'collect-request';
      readonly id: number;
      readonly stats: Partial<WorkerStats>;
      /** Time since `body` was serialised, in ms. Above 0 if serialising takes too long and an earlier body is sent. */
      readonly ageMs: number;
      readonly body: string;
    }
  /** Metrics of this worker. `asked` = they answer `collect`; otherwise the worker sends them regularly. */
  | {
      readonly type: 'metrics';
      readonly asked: boolean;
      readonly stats: Partial<WorkerStats>;
      readonly ageMs: number;
      readonly body: string;
    }
  /** Asks for the address of the hub. The first request makes the primary start the hub. */
  | { readonly type: 'hub-request'; readonly id: number }
  /** From now on the primary sends only these events of the cluster to the worker. */
  | { readonly type: 'subscribe'; readonly events: readonly string[] }
  /** Answers `fold`: its `count` bodies, merged into one body. */
  | {
      readonly type: 'folded';
      readonly epoch: number;
      readonly count: number;
      readonly body: string;
    };

/** The report of a worker whose primary is `nestjs-cluster doctor`: the app is up, with these findings. */
export interface ExaminationMessage {
  readonly type: 'examined';
  /** The number of workers for which the findings hold. */
  readonly workers: number;
  readonly findings: readonly FindingReport[];
  /** Names of findings that are not shown. */
  readonly ignored: readonly string[];
}

/** The fields of a finding: see `observe/findings/finding.ts`. */
export type FindingReport = Readonly<
  Record<'name' | 'level' | 'where' | 'problem' | 'remedy', string>
>;
