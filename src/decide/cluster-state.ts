import type { BlockedRequest, BlockReport, DrainReport } from '../contract/messages.js';
import type { ErrorReport } from '../contract/errors/error-report.js';
import type {
  ClusterSnapshot,
  FailureCause,
  ReloadOutcome,
  ReplaceCause,
  RetireCause,
  WorkerExit,
} from '../contract/snapshot/types.js';
import type { FailureHistory } from './policies/failure.policy.js';
import type { BootErrors } from './worker/worker-actions.js';
import type { Leadership } from './leadership.js';

/** A worker's id: the number of its fork, unique in the primary's lifetime. */
export type WorkerId = number;

/** A timer. A worker, a slot or the cluster has at most one timer of each type. */
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

/** The real paths of a program, with all symlinks resolved. */
export interface ProgramPaths {
  readonly script: string;
  readonly cwd: string;
}

export interface Release extends ProgramPaths {
  readonly generation: number;
}

/** A worker process, from fork to exit. A worker that has exited is removed from the state. */
export type Worker = LiveWorker | DrainingWorker;

export type LiveWorker = StartingWorker | ReadyWorker;

interface AnyWorker {
  readonly id: WorkerId;
  readonly slot: number;
  readonly generation: number;
  /** The time of the fork, in monotonic ms, like every time in the state. */
  readonly startedAt: number;
  /** Whether the worker's inspector may be open. If so, its start and its heartbeat have no time limit. */
  readonly debugged: boolean;
  readonly ping: { readonly seq: number; readonly sentAt: number } | undefined;
  /** The watchdog's report while the event loop is blocked. */
  readonly block: { readonly report: BlockReport; readonly since: number } | undefined;
  readonly error: ErrorReport | null;
  /** The request whose error ends the worker, or else the requests that were in flight. */
  readonly requests: readonly BlockedRequest[];
  /** Whether the worker reported an uncaught error, after which it drains and exits. */
  readonly fatal: boolean;
  /** Why the primary killed the worker, or why the worker exits. The exit code does not show the reason. */
  readonly failure: { readonly cause: FailureCause; readonly detail: string } | undefined;
  /** A random number 0..1 that varies the worker's recycling limits. */
  readonly jitter: number;
  /** Whether the worker has jobs that only the leader runs, so that it needs a lease when it leads. */
  readonly follows: boolean;
  /** Whether a lease ended before the worker answered. The worker cannot lead until it answers. */
  readonly lapsed: boolean;
}

export interface StartingWorker extends AnyWorker {
  readonly state: 'starting';
}

export interface ReadyWorker extends AnyWorker {
  readonly state: 'ready';
  readonly readyAt: number;
  /** Whether the worker is or was asked to verify that its threads can load their code. */
  readonly threads: 'unverified' | 'asked' | 'settled';
  /** Whether the worker was above the soft memory limit when it became ready. */
  readonly largeAtStart: boolean;
  /** Why the worker is about to leave: its app closes itself, or it received a signal. */
  readonly leaving: 'closed' | 'signalled' | undefined;
}

export interface DrainingWorker extends AnyWorker {
  readonly state: 'draining';
  /** `undefined` if the worker was asked to leave before it was ready. */
  readonly readyAt: number | undefined;
  /** Why the worker was asked to leave; `undefined` if it drains by itself after an uncaught error. */
  readonly retirement: Retirement | undefined;
  /** Whether the worker did not leave in time and was killed. */
  readonly overdue: boolean;
  readonly drain: DrainReport | undefined;
}

export interface Retirement {
  readonly cause: RetireCause;
  /** The signal that the shutdown hooks of the worker's app receive. */
  readonly signal: NodeJS.Signals;
  readonly since: number;
}

/** A numbered place for a worker, and the history of its workers. */
export interface Slot {
  readonly index: number;
  /** The slot's own live worker. It is never a draining worker or a candidate. */
  readonly worker: WorkerId | undefined;
  /** The release of the slot's next worker. */
  readonly release: Release;
  readonly failures: FailureHistory;
  readonly restarts: Readonly<Partial<Record<FailureCause, number>>>;
  readonly lastExit: WorkerExit | null;
  /** The number of requests aborted by drains that reached their deadline. */
  readonly abortedRequests: number;
  /** Upkeep replaces no worker of the slot before this time: the last replacement failed or did not help. */
  readonly noReplacementBefore: number;
  readonly replacement: Replacement | undefined;
}

/** A request to replace the worker of a slot without downtime. */
export interface ReplacementRequest {
  readonly slot: number;
  readonly cause: ReplaceCause;
  readonly detail: string;
  readonly release: Release;
}

export type Replacement = Candidacy | HandingOver;

export interface Candidacy extends ReplacementRequest {
  /**
   * The steps of the new worker: it boots, lives for a while without failing, verifies that its
   * threads can load their code, and passes the health check of its app.
   */
  readonly phase: 'booting' | 'canary' | 'verifying' | 'checking';
  readonly candidate: WorkerId;
}

/** The new worker serves, and the old worker drains. */
export interface HandingOver extends ReplacementRequest {
  readonly phase: 'handing-over';
  readonly predecessor: WorkerId;
}

/** The requester of a reload, scale or restart. Each request gets one answer. */
export type Requester =
  | { readonly by: 'caller'; readonly id: number }
  /** If the requester itself is replaced, it gets its answer before it drains. */
  | {
      readonly by: 'worker';
      readonly worker: WorkerId;
      readonly slot: number;
      readonly id: number;
    };

export interface PendingRequest {
  readonly for: 'reload' | 'scale' | 'restart';
  /** The slot to restart; `undefined` for a reload or scale. */
  readonly slot: number | undefined;
  readonly requester: Requester;
}

export interface ReloadUnderWay {
  /** The number of the reload. It does not change when the reload is rolled back. */
  readonly generation: number;
  /** The release of the new workers; `undefined` until it has been found. */
  readonly release: Release | undefined;
  /** The release to roll back to if the new release fails; `undefined` if no earlier release is known to work. */
  readonly before: Release | undefined;
  readonly startedAt: number;
  /** The outcome so far. If it is not `completed`, the reload is being rolled back. */
  readonly outcome: ReloadOutcome;
  /** Why the reload is rolled back; `null` if it is not. */
  readonly reason: string | null;
}

/** Addresses that the first ready worker reported. */
export interface Served {
  /** `null` if the app has no HTTP server. */
  readonly url: string | null;
  readonly endpoints: readonly string[];
}

export interface ShutdownUnderWay {
  readonly phase: 'draining' | 'destroying' | 'killing';
  readonly exitCode: number;
  /** The signal that the shutdown hooks of the workers' apps receive. */
  readonly signal: NodeJS.Signals;
}

export interface ClusterState {
  /** The number of workers that should serve. The slots below it are wanted, and have or get a worker. */
  readonly desired: number;
  /** All slots that ever existed. Scaling down keeps the slots, because their counts must not be lost. */
  readonly slots: readonly Slot[];
  /** Oldest first. */
  readonly workers: ReadonlyMap<WorkerId, Worker>;
  readonly forks: number;
  readonly timers: ReadonlyMap<string, Timer>;

  /** The release for a new slot, set by the last completed reload. */
  readonly release: Release;
  /** The release before `release`, while `release` is observed after a reload. */
  readonly previous: Release | undefined;
  /** Number of failures that count against the release being rolled out or observed. */
  readonly strikes: number;
  /** Recent worker failures and their releases. */
  readonly endings: readonly { readonly generation: number; readonly text: string }[];
  readonly reload: ReloadUnderWay | undefined;
  /** Number of the last reload that began. */
  readonly lastReload: number;
  readonly reloads: Readonly<Record<ReloadOutcome, number>>;
  readonly pendingRequests: readonly PendingRequest[];

  readonly replacementsWaiting: readonly ReplacementRequest[];

  readonly bootErrors: BootErrors;
  /** The generations whose threads can load their code. */
  readonly verified: readonly number[];
  readonly leadership: Leadership;
  readonly served: Served | undefined;
  /** Whether the cluster has started: a worker was ready, and its threads can load their code. */
  readonly everReady: boolean;
  /** `minReady` as reported by the worker that became ready last. */
  readonly minReady: ClusterSnapshot['minReady'];
  /** Whether a warning said that the soft memory limit is too low. */
  readonly warnedOfLimit: boolean;

  readonly pings: number;
  readonly lastBeatAt: number;
  readonly shutdown: ShutdownUnderWay | undefined;
  readonly ended: boolean;
  readonly seed: number;
}

export function isWanted({ desired }: ClusterState, slot: number): boolean {
  return slot < desired;
}

export function wantedSlots({ slots, desired }: ClusterState): readonly Slot[] {
  return slots.slice(0, desired);
}

/** Slots whose worker runs another release, and empty slots whose next worker would. */
export function slotsOfOtherReleases(
  state: ClusterState,
  { generation }: Release,
): readonly Slot[] {
  return wantedSlots(state).filter(({ worker, release }) => {
    const current = worker === undefined ? undefined : state.workers.get(worker);
    return (current ?? release).generation !== generation;
  });
}

/** The replacements under way. Only a reload has several. */
export function replacementsOf({ slots }: ClusterState): readonly Replacement[] {
  return slots.flatMap(({ replacement }) => replacement ?? []);
}

export function candidateOf({ replacement }: Slot): WorkerId | undefined {
  return replacement?.phase === 'handing-over' ? undefined : replacement?.candidate;
}

export function contendersOf(state: ClusterState, slot: Slot): readonly Worker[] {
  const ids = [slot.worker, candidateOf(slot)];
  return ids.flatMap((id) => (id === undefined ? [] : (state.workers.get(id) ?? [])));
}

export function isServed(state: ClusterState, slot: Slot): boolean {
  return contendersOf(state, slot).some((worker) => worker.state === 'ready');
}

/** Every process of a slot: draining workers, then the slot's worker, then its candidate. */
export function workersOf(state: ClusterState, slot: number): readonly Worker[] {
  const { worker } = state.slots[slot]!;
  const candidate = candidateOf(state.slots[slot]!);
  const place = ({ id }: Worker) => (id === candidate ? 2 : id === worker ? 1 : 0);
  return [...state.workers.values()]
    .filter((each) => each.slot === slot)
    .toSorted((a, b) => place(a) - place(b));
}
