import type { BlockReport, StackReport } from './block-report.js';
import type { ErrorReport } from './error-report.js';
import type { Fingerprint, QuarantineEntry } from './fingerprint.js';
import type { PassedConnection } from './passed-connection.js';
import type {
  ClusterSnapshot,
  CollectedMetrics,
  HealthVerdict,
  HubAddress,
  ReloadResult,
  RestartResult,
  RetireCause,
  WorkerStats,
} from '../snapshot/index.js';

/** What a drain had to do by force. */
export interface DrainReport {
  readonly durationMs: number;
  /** Connections that the kernel had accepted and this process had not, reset with their socket. */
  readonly unacceptedConnections: number;
  /** Connections destroyed at the deadline. */
  readonly destroyedConnections: number;
  /** Requests that were in flight on them. */
  readonly abortedRequests: number;
  /** WebSockets among them: they were told to close and did not. */
  readonly destroyedWebSockets: number;
  /** Why `app.close()` did not end well. */
  readonly hookError: string | null;
}

/** Where a worker listens: the primary's handle travels beside this message. */
export type ListenTarget =
  | { readonly kind: 'tcp'; readonly port: number; readonly host: string }
  | { readonly kind: 'unix'; readonly path: string };

/** What a worker carried since it last said so. */
export interface LoadReport {
  /** Responses finished. */
  readonly requests: number;
  /** Connections they went over that are open still, and whose clients could be asked to connect again. */
  readonly connections: number;
  /** Share of the time that the event loop was busy, 0..1. */
  readonly utilization: number;
}

/** What every supervisor sends that ends a program, and so what an app is told where nothing was sent. */
export const LEAVE_SIGNAL = 'SIGTERM';

/** What a worker was at when it failed to come up. */
export const BOOT_PHASES = ['create', 'init', 'listen'] as const;
export type BootPhase = (typeof BOOT_PHASES)[number];

/**
 * The whole protocol between the primary and a worker. Node's channel is
 * shared with the app and its libraries, so every message carries our name and
 * version; what does not match is somebody else's, or wrong, and is dropped.
 * Fields that are optional may be missing in what another version sends.
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
      /** It has threads, and will answer `verify`. */
      readonly verifiable?: boolean | undefined;
    }
  /** The app could not be brought up; the process ends next. */
  | { readonly type: 'boot-failed'; readonly phase: BootPhase; readonly error: ErrorReport }
  /** An error nobody caught. The worker drains and ends, or, with `abort`, ends at once. */
  | { readonly type: 'fatal'; readonly error: ErrorReport; readonly abort: boolean }
  /**
   * Before that, and before any other end that it sees; from the watchdog too. What was at work;
   * with `certain` that is known, and may be nothing.
   */
  | {
      readonly type: 'suspects';
      readonly certain: boolean;
      readonly suspects: readonly Fingerprint[];
    }
  /** While requests are watched: one begins as number `n`, others were answered. */
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
  /** Likewise from the watchdog: there is no profile of the block. */
  | { readonly type: 'unprofiled'; readonly problem: string }
  /** Likewise: answers its request `stack`. */
  | ({ readonly type: 'stack'; readonly id: number } & StackReport)
  /** Answers `check`. */
  | ({ readonly type: 'checked'; readonly id: number } & HealthVerdict)
  /** Answers `verify`: what stands in the way. */
  | { readonly type: 'verified'; readonly error: ErrorReport | null }
  | { readonly type: 'reload-request'; readonly id: number }
  | { readonly type: 'scale-request'; readonly id: number; readonly workers: number }
  | { readonly type: 'restart-request'; readonly id: number; readonly slot: number }
  /** Something in it cannot be stopped or repaired: another worker should take its place. */
  | { readonly type: 'replace-request'; readonly reason: string }
  /** It has something that one worker alone is to run: it wants to be told when it leads. */
  | { readonly type: 'lead-request' }
  /** Answers `lead`. */
  | { readonly type: 'leads'; readonly seq: number }
  /** It leads no more, and begins nothing that is due after `at`, of the machine's clock. */
  | { readonly type: 'resigned'; readonly at: number }
  /** What runs in it that one worker alone is to run. `done`: has begun, and is to run once. */
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
      /** Its app closes itself: no signal has told it to. */
      readonly closed?: boolean | undefined;
    }
  /** Connections that are passed to that name are for it. */
  | { readonly type: 'takes'; readonly name: string }
  /** For whoever takes what is passed to `to`, else for its sender as `from`: the connection beside this. */
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
  /** Metrics of this worker: asked for by `collect`, or of its own accord. */
  | {
      readonly type: 'metrics';
      readonly asked: boolean;
      readonly stats: Partial<WorkerStats>;
      readonly ageMs: number;
      readonly body: string;
    }
  /** Where is the hub? It is started for the first who asks. */
  | { readonly type: 'hub-request'; readonly id: number }
  /** From now on it wants to be told of these events of the cluster, and of no others. */
  | { readonly type: 'subscribe'; readonly events: readonly string[] }
  /** The `count` bodies of a `fold`, as one. */
  | {
      readonly type: 'folded';
      readonly epoch: number;
      readonly count: number;
      readonly body: string;
    };

/** What a worker tells a doctor, which is its primary then: the app is up, and this was seen. */
export interface ExaminationMessage {
  readonly type: 'examined';
  /** Workers that the findings are about. */
  readonly workers: number;
  readonly findings: readonly FindingReport[];
  /** Names of findings that are not to be told. */
  readonly ignored: readonly string[];
}

/** See `findings/finding.ts`. */
export type FindingReport = Readonly<
  Record<'name' | 'level' | 'where' | 'problem' | 'remedy' | 'docs', string>
>;

/** What a leader has to know of those before it. Times are of the machine's monotonic clock, in ms. */
export interface Inheritance {
  /** What was due up to then is not its own; `undefined` where nobody led before. */
  readonly since?: number | undefined;
  /** Jobs that still run in other workers. */
  readonly busy: readonly string[];
  /** Jobs that are to run once, and have. */
  readonly done: readonly string[];
}

export type PrimaryMessage =
  /** With a handle beside it: listen on that. Without: listen through node:cluster. */
  | { readonly type: 'listen'; readonly target: ListenTarget }
  /** There is nothing to listen on. */
  | { readonly type: 'listen-refused'; readonly error: ErrorReport }
  /** Listen on the handle beside this message too: the socket of a slot that has no worker. */
  | { readonly type: 'adopt'; readonly slot: number }
  /** That slot has one again. */
  | { readonly type: 'release'; readonly slot: number }
  | { readonly type: 'ping'; readonly seq: number }
  /** You lead until then. */
  | ({ readonly type: 'lead'; readonly seq: number; readonly until: number } & Inheritance)
  /** What have you carried since you last said? */
  | { readonly type: 'report-load' }
  /** Ask clients that make up this share of the load to connect again, 0..1. */
  | { readonly type: 'give-away'; readonly ratio: number }
  | {
      readonly type: 'drain';
      readonly cause: RetireCause;
      /** For the app's shutdown hooks; a primary of an older version does not say. */
      readonly signal?: NodeJS.Signals;
      /** Unix socket that takes a snapshot of its heap, once it has served its last request. */
      readonly snapshotTo?: string | undefined;
    }
  /** Another worker has passed on the connection beside this message. */
  | ({ readonly type: 'passed' } & PassedConnection)
  /** The primary holds no socket any more: what waits in their queues is for the workers to serve. */
  | { readonly type: 'released' }
  /** Answer these requests 503; with `watch`, tell of each request that begins. */
  | {
      readonly type: 'quarantine';
      readonly watch: boolean;
      readonly entries: readonly QuarantineEntry[];
    }
  /** End open connections now. */
  | { readonly type: 'force' }
  /** Is the app well? */
  | { readonly type: 'check'; readonly id: number }
  /** Can a thread load all that threads are to run? */
  | { readonly type: 'verify' }
  | { readonly type: 'reloaded'; readonly id: number; readonly result: ReloadResult }
  | { readonly type: 'restarted'; readonly id: number; readonly result: RestartResult }
  | { readonly type: 'scaled'; readonly id: number; readonly snapshot: ClusterSnapshot }
  /** A new worker would have nothing to listen on. */
  | {
      readonly type: 'scale-refused';
      readonly id: number;
      readonly address: string;
      readonly cause: ErrorReport;
    }
  | { readonly type: 'snapshot'; readonly id: number; readonly snapshot: ClusterSnapshot }
  | ({ readonly type: 'hub'; readonly id: number } & HubAddress)
  | { readonly type: 'hub-refused'; readonly id: number; readonly reason: string }
  | { readonly type: 'collect' }
  /** Fold the metrics of workers that are gone into one body. */
  | { readonly type: 'fold'; readonly epoch: number; readonly bodies: readonly string[] }
  /** Something happened to which it has subscribed. */
  | {
      readonly type: 'event';
      readonly name: string;
      readonly event: unknown;
      /** Events before it that it was not told of, since it had not read others. */
      readonly missed: number;
    }
  /** Answers `collect-request`. */
  | ({ readonly type: 'collected'; readonly id: number } & CollectedMetrics);
