import type { BlockReport, DrainReport, ErrorReport } from '../../contract/ipc/index.js';
import type {
  ClusterSnapshot,
  FailureCause,
  ReloadOutcome,
  ReplaceCause,
  RetireCause,
  WorkerExit,
} from '../../contract/snapshot/index.js';
import type { FailureHistory } from './policies/restart.policy.js';
import type { Release } from '../processes/release.js';
import type { BootErrors } from './worker/boot-errors.js';
import type { Leadership } from './leadership.js';
import type { WorkerMap } from './worker/worker-map.js';

/** Names a worker for the whole life of the primary: the number of its fork. */
export type WorkerId = number;

/** A process, from fork to exit. One that has exited is in the state no more. */
export type Worker = StartingWorker | ReadyWorker | DrainingWorker;

interface AnyWorker {
  readonly id: WorkerId;
  readonly slot: number;
  readonly generation: number;
  /** Monotonic ms, like every time here. */
  readonly startedAt: number;
  /** Its inspector is open, or may be: time means nothing. */
  readonly debugged: boolean;
  /** The ping that is not answered yet: one at most. */
  readonly ping: { readonly seq: number; readonly sentAt: number } | undefined;
  /** The watchdog's report of the block that is going on. */
  readonly block: { readonly report: BlockReport; readonly since: number } | undefined;
  /** The last thing it said was wrong. */
  readonly error: ErrorReport | null;
  /** It said that it ends by an error of its own. */
  readonly fatal: boolean;
  /** Why the primary killed it, or why it ends of its own accord: its exit does not tell. */
  readonly condemned: { readonly cause: FailureCause; readonly detail: string } | undefined;
  /** It prints an error that keeps it from coming up. */
  readonly printsBootError: boolean;
  /** 0..1, drawn once: moves its recycling limits by their jitter. */
  readonly jitter: number;
  /** It has asked to be told when it leads. */
  readonly follows: boolean;
  /** It let a lease run out without a word: it does not lead until it says one. */
  readonly lapsed: boolean;
  /** Names of the jobs that run in it: each may run in one worker at a time. */
  readonly jobs: readonly string[];
}

export interface StartingWorker extends AnyWorker {
  readonly state: 'starting';
}

export interface ReadyWorker extends AnyWorker {
  readonly state: 'ready';
  readonly readyAt: number;
  /** It can be asked whether its threads can do their work. */
  readonly verifiable: boolean;
  /** No worker of its generation has shown yet that they can. */
  readonly unproven: boolean;
  /** It was above the soft memory limit when it became ready. */
  readonly bornTooLarge: boolean;
  /** It said that it is about to leave: because its app closes itself, or was sent a signal. */
  readonly leaving: 'closed' | 'signalled' | undefined;
}

export interface DrainingWorker extends AnyWorker {
  readonly state: 'draining';
  /** `undefined` where it was to leave before it had come up. */
  readonly readyAt: number | undefined;
  /** Why it was asked to leave; `undefined` where it drains because of an error that nobody caught. */
  readonly retirement: Retirement | undefined;
  /** It did not leave in time and was killed. */
  readonly overdue: boolean;
  readonly drain: DrainReport | undefined;
}

export interface Retirement {
  readonly cause: RetireCause;
  /** The signal that its app's shutdown hooks receive. */
  readonly signal: NodeJS.Signals;
  /** The path to which it sends a heap snapshot. */
  readonly snapshotTo?: string | undefined;
  readonly since: number;
}

/** A numbered place for a worker, and what is remembered of those that held it. */
export interface Slot {
  readonly index: number;
  /** Serves, or is about to. Workers on their way out are none of it, nor is a candidate. */
  readonly worker: WorkerId | undefined;
  /** The release of its next worker. */
  readonly release: Release;
  readonly failures: FailureHistory;
  readonly restarts: Readonly<Partial<Record<FailureCause, number>>>;
  readonly lastExit: WorkerExit | null;
  /** By drains that were cut short. */
  readonly abortedRequests: number;
  /** Because the last replacement failed, or would be no better. */
  readonly noReplacementBefore: number;
}

/** A worker is to be replaced without a gap. */
export interface ReplacementRequest {
  readonly slot: number;
  readonly cause: ReplaceCause;
  /** Why, in words. */
  readonly detail: string;
  readonly release: Release;
  /** The path to which the old worker sends a heap snapshot. */
  readonly snapshotTo?: string | undefined;
}

/** The replacement under way: one at a time. */
export type Replacement = Candidacy | HandingOver;

export interface Candidacy extends ReplacementRequest {
  /**
   * The new worker boots; it has to live for a while; its threads have to be
   * proven; its app says whether it is well.
   */
  readonly phase: 'booting' | 'canary' | 'proving' | 'checking';
  readonly candidate: WorkerId;
}

/** The new worker serves, the old one drains. */
export interface HandingOver extends ReplacementRequest {
  readonly phase: 'handing-over';
  readonly predecessor: WorkerId;
}

/** The one that asked for something that takes a while. It gets one answer. */
export type Requester =
  | { readonly by: 'caller'; readonly id: number }
  /** It may have to leave in the course of it: it is told before, while it can still hear. */
  | {
      readonly by: 'worker';
      readonly worker: WorkerId;
      readonly slot: number;
      readonly id: number;
    };

/** A request that has no answer yet. */
export interface PendingRequest {
  readonly for: 'reload' | 'scale' | 'restart';
  /** The slot of a restart. */
  readonly slot?: number;
  readonly requester: Requester;
}

export interface ReloadUnderWay {
  /** Its number; of the reload that is taken back, too. */
  readonly generation: number;
  /** The release of the new workers; `undefined` until it has been found. */
  readonly release: Release | undefined;
  /** The release that comes back if the new one fails; `undefined` if that did not stay up either. */
  readonly before: Release | undefined;
  readonly startedAt: number;
  /** How it ends if nothing more goes wrong: all but `completed` is the way back. */
  readonly outcome: ReloadOutcome;
  /** Why the release before comes back. */
  readonly reason: string | null;
}

/** Whether threads can load what they are to run is asked of one worker of each generation. */
export interface Verification {
  /** Generations of which it is known. */
  readonly proven: readonly number[];
  readonly asked: WorkerId | undefined;
}

/** The first ready worker's report of itself. */
export interface Served {
  /** `null` where its app has no HTTP server. */
  readonly url: string | null;
  readonly endpoints: readonly string[];
}

export type ShutdownPhase = 'draining' | 'destroying' | 'killing';

export interface ShutdownUnderWay {
  readonly phase: ShutdownPhase;
  readonly exitCode: number;
  /** The signal that the shutdown hooks of the workers' apps receive. */
  readonly signal: NodeJS.Signals;
}

/** Something that is due after a time. A worker, a slot or the cluster has one of each kind. */
export type Timer =
  | { readonly type: WorkerTimer; readonly worker: WorkerId }
  | { readonly type: 'start-due'; readonly slot: number }
  | { readonly type: 'observation-over' }
  | { readonly type: 'lame-duck-over' }
  | { readonly type: 'lease-due' };

export type WorkerTimer =
  | 'ready-overdue'
  | 'stop-overdue'
  | 'exit-overdue'
  | 'leave-due'
  | 'recovered'
  | 'block-overdue'
  | 'canary-over'
  | 'check-overdue'
  | 'verify-overdue';

/** The whole cluster, as plain data. */
export interface ClusterState {
  /** Workers there should be. */
  readonly desired: number;
  /** Every slot there ever was: what was counted in one is not forgotten by scaling down. */
  readonly slots: readonly Slot[];
  readonly workers: WorkerMap;
  readonly forks: number;
  readonly timers: ReadonlyMap<string, Timer>;

  /** The release for a new slot. The last completed reload set it. */
  readonly release: Release;
  /** The release before, while the new one is observed. */
  readonly previous: Release | undefined;
  readonly reload: ReloadUnderWay | undefined;
  /** Number of the last reload that began. */
  readonly lastReload: number;
  readonly reloads: Readonly<Record<ReloadOutcome, number>>;
  readonly pendingRequests: readonly PendingRequest[];

  readonly replacement: Replacement | undefined;
  readonly replacementsWaiting: readonly ReplacementRequest[];

  /** When slots were last restarted. */
  readonly restartedAt: readonly number[];
  readonly bootErrors: BootErrors;
  readonly verification: Verification;
  readonly leadership: Leadership;
  readonly served: Served | undefined;
  /** A worker has served, and its threads can do their work: the cluster has started. */
  readonly everReady: boolean;
  /** As the worker said that became ready last. */
  readonly minReady: ClusterSnapshot['minReady'];
  /** That the soft memory limit is too low for the app is said once. */
  readonly toldOfLimit: boolean;

  readonly pings: number;
  readonly lastBeatAt: number;
  readonly shutdown: ShutdownUnderWay | undefined;
  readonly ended: boolean;
  readonly seed: number;
}
