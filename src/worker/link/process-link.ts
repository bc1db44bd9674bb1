import type { Server } from 'node:http';
import { reportError } from '../../contract/errors/error-report.js';
import { ClusterNoPrimaryError } from '../../contract/errors/errors.js';
import type { ClusterEventName } from '../../contract/log/events.js';
import { EventListeners } from '../../contract/log/event-listeners.js';
import type { PrimaryMessage } from '../../contract/messages.js';
import type { ResolvedClusterOptions } from '../../contract/options/resolve.js';
import { type FindingName, silencedBy } from '../../contract/options/log.js';
import { checkSlot, checkWorkerCount } from '../../contract/options/checks.js';
import { ProcessMeter, untilIdle } from '../../contract/process/process-meter.js';
import {
  type AgedSnapshot,
  type ClusterLink,
  type ClusterSnapshot,
  type CollectedMetrics,
  type HealthVerdict,
  type LeaderRole,
  type LinkEventListener,
  MAX_METRICS_BODY_LENGTH,
  type MetricsContribution,
  type MetricsSource,
  type ReloadResult,
  type RequestScope,
  type ResponseObserver,
  type RestartResult,
  SCRAPE_TIMEOUT_MS,
  type ThreadsOfProcess,
  type WorkerIdentity,
  type WorkerState,
  snapshotOf,
  workerSnapshot,
} from '../../contract/snapshot/types.js';
import type { WorkerStats } from '../../contract/stats.js';
import { RequestTracker } from '../serve/tracker.js';
import { watchClient } from '../serve/request-scope.js';
import type { PrimaryChannel } from './primary-channel.js';

/** If the primary does not send a snapshot within this time, the last snapshot is used. */
export const SNAPSHOT_TIMEOUT_MS = 500;

/** Maximum wait for a thread's socket path. Starting the thread takes about 0.1 s. */
const THREAD_TIMEOUT_MS = 5_000;

/** Measurement interval of a process that has no primary and so gets no heartbeats. */
const MEASURE_MS = 1_000;

/** Maximum wait for an idle interval, because an app under full load is never idle. */
const IDLE_PATIENCE_MS = 1_000;

interface LinkSetup {
  /** The options of `bootstrap()`. Missing in an app that does not use it. */
  readonly options?: Pick<ResolvedClusterOptions, 'balancing' | 'expose' | 'warnings'>;
  readonly droppedLogLines?: () => number;
  readonly logWarning?: (message: string) => void;
  /** Missing in a process without a primary. */
  readonly worker?: {
    readonly identity: WorkerIdentity;
    readonly workers: number;
    readonly channel: PrimaryChannel;
    readonly leaderRole: LeaderRole;
  };
}

/** Clients, for example of Socket.IO, that a drain sends to other workers. */
export interface SentClients {
  readonly present: () => readonly unknown[];
  readonly leave: (one: unknown) => void;
}

/** Connects this process to its primary. Holds the app's state and measurements. */
export class ProcessLink implements ClusterLink {
  state: WorkerState = 'starting';
  readonly identity: WorkerIdentity;
  readonly workers: number;
  readonly leaderRole: LeaderRole;
  readonly bootstrapped: boolean;
  readonly showsDetails: boolean;
  readonly tracker = new RequestTracker();
  readonly meter = new ProcessMeter();
  endpoints: readonly string[] = [];
  /** The cluster is ready if at least this many workers are. */
  minReady: ClusterSnapshot['minReady'] = 1;
  /** Checks the app's health. Without `ClusterModule`, the app always counts as healthy. */
  checkHealth: () => Promise<HealthVerdict> = async () => ({ healthy: true, detail: null });
  /** The threads of `@CpuBound()` methods. */
  threads: ThreadsOfProcess | undefined;
  readonly events = new EventListeners((message, error) =>
    this.warn(`${message}: ${error.message}`),
  );
  readonly watchClient = watchClient;
  readonly #channel: PrimaryChannel | undefined;
  #threadUtilization = 0;
  readonly #tasks: ((before: number) => boolean)[] = [];
  readonly clients: SentClients[] = [];
  #metrics: MetricsSource | undefined;
  readonly #contributions: MetricsContribution[] = [];
  /** The last serialized metrics, and their time in monotonic ms. */
  #lastMetrics = '';
  metricsAt = -Infinity;
  /** Set when the final metrics have been sent. */
  isSealed = false;
  #lastSnapshot: { readonly snapshot: ClusterSnapshot; readonly at: number } | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  #apps = 0;
  #startIdleWork!: () => void;
  /** Resolves when the process serves requests and all work of {@link afterStart} is done. */
  #idleWork: Promise<unknown> = new Promise<void>((resolve) => (this.#startIdleWork = resolve));

  constructor(private readonly setup: LinkSetup = {}) {
    const { options, worker } = setup;
    this.identity = worker?.identity ?? { slot: 0, pid: process.pid, generation: 0 };
    this.workers = worker?.workers ?? 1;
    this.leaderRole = worker?.leaderRole ?? leaderAlone(this);
    this.bootstrapped = options !== undefined;
    this.showsDetails = options?.expose !== 'admin';
    this.#channel = worker?.channel;
    if (worker === undefined) this.#timer = setInterval(() => this.measure(), MEASURE_MS).unref();
  }

  get accepting(): boolean {
    return this.state === 'ready' || this.state === 'starting';
  }

  warn(message: string, name?: FindingName): void {
    const { options, logWarning = () => {} } = this.setup;
    if (name === undefined) return logWarning(message);
    const { shown, ignore } = options?.warnings ?? { shown: true, ignore: [] };
    if (shown && !ignore.includes(name)) logWarning(`${message}; ${silencedBy(name)}`);
  }

  /** Ends a measurement interval. Called at each heartbeat. */
  measure(): WorkerStats {
    this.meter.measure();
    this.#threadUtilization = this.threads?.utilization() ?? 0;
    return this.stats();
  }

  /** Values that are expensive to read are from the last interval. Others are current. */
  stats(): WorkerStats {
    const { tracker } = this;
    return {
      ...this.meter.peek(),
      threadUtilization: this.#threadUtilization,
      openConnections: tracker.openConnections,
      requestsInFlight: tracker.requestsInFlight,
      requestsTotal: tracker.requestsTotal,
      rebalancedConnectionsTotal: tracker.rebalancedConnectionsTotal,
      logLinesDroppedTotal: this.setup.droppedLogLines?.() ?? 0,
      droppedConnectionsTotal: tracker.droppedConnections,
    };
  }

  async snapshot(): Promise<AgedSnapshot> {
    if (this.#channel === undefined) return { snapshot: this.#ownSnapshot(), ageMs: 0 };
    const request = { type: 'snapshot-request' } as const;
    const stats = () => ({ stats: this.stats() });
    const snapshot = await this.#channel.ask(request, SNAPSHOT_TIMEOUT_MS, stats);
    if (snapshot === undefined) return this.#lastKnown();
    this.#lastSnapshot = { snapshot, at: performance.now() };
    return { snapshot, ageMs: 0 };
  }

  async collectMetrics(): Promise<CollectedMetrics> {
    if (this.#channel === undefined) {
      const { slot, generation } = this.identity;
      const workers = [{ slot, generation, ...(await this.serializeMetrics()) }];
      return { snapshot: this.#ownSnapshot(), workers, retired: [] };
    }
    const request = { type: 'collect-request' } as const;
    const collected = await this.#channel.ask(request, SCRAPE_TIMEOUT_MS, () => this.report());
    if (collected === undefined) {
      const { snapshot, ageMs: snapshotAgeMs } = this.#lastKnown();
      return { snapshot, workers: [], retired: [], snapshotAgeMs };
    }
    this.#lastSnapshot = { snapshot: collected.snapshot, at: performance.now() };
    return collected;
  }

  async report() {
    const metrics = await this.serializeMetrics();
    return { stats: this.stats(), ...metrics };
  }

  /** Returns the last serialized metrics if the current metrics cannot be read, are too long or are sealed. */
  async serializeMetrics(): Promise<{ readonly body: string; readonly ageMs: number }> {
    // Ignores errors, because the source logs them.
    const body = this.isSealed ? undefined : await this.#metrics?.serialize().catch(() => {});
    if (body !== undefined && body.length <= MAX_METRICS_BODY_LENGTH) {
      this.#lastMetrics = body;
      this.metricsAt = performance.now();
    }
    const ageMs = this.#lastMetrics === '' ? 0 : Math.round(performance.now() - this.metricsAt);
    return { body: this.#lastMetrics, ageMs };
  }

  /** Whether some workers were not ready in the last snapshot, or no snapshot was received. */
  get isSnapshotEarly(): boolean {
    const known = this.#lastSnapshot?.snapshot;
    return known === undefined || known.ready < known.desired;
  }

  async reload(): Promise<ReloadResult> {
    return (await this.#channel?.ask({ type: 'reload-request' })) ?? this.#noPrimary('reload()');
  }

  async scale(workers: number): Promise<ClusterSnapshot> {
    const request = { type: 'scale-request', workers: checkWorkerCount(workers) } as const;
    return (await this.#channel?.ask(request)) ?? this.#noPrimary('scale()');
  }

  async restart(slot: number): Promise<RestartResult> {
    const request = { type: 'restart-request', slot: checkSlot(slot) } as const;
    return (await this.#channel?.ask(request)) ?? this.#noPrimary('restart()');
  }

  thread(name: string): (() => Promise<string>) | undefined {
    const channel = this.#channel;
    if (channel === undefined) return undefined;
    return async () => {
      const path = await channel.ask({ type: 'thread-request', name }, THREAD_TIMEOUT_MS);
      if (path === undefined) throw new Error('the primary does not answer');
      return path;
    };
  }

  onEvent(name: ClusterEventName, listener: LinkEventListener): void {
    this.events.on(name, listener);
    this.#subscribe();
  }

  offEvent(name: ClusterEventName, listener: LinkEventListener): void {
    this.events.off(name, listener);
    this.#subscribe();
  }

  receive({ name, event, missed }: PrimaryMessage & { readonly type: 'event' }): void {
    if (missed > 0) this.warn('cluster events were dropped: the worker did not read them in time');
    this.events.call(name as ClusterEventName, event as never);
  }

  #subscribe(): void {
    void this.#channel?.send({ type: 'subscribe', events: this.events.names });
  }

  provideMetrics(source: MetricsSource): void {
    this.#metrics = source;
    for (const contribution of this.#contributions) void source.extend?.(contribution);
  }

  metrics(contribution: MetricsContribution): void {
    this.#contributions.push(contribution);
    void this.#metrics?.extend?.(contribution);
  }

  observeResponses(observer: ResponseObserver): void {
    this.tracker.observer = observer;
  }

  followScopes(on: boolean): void {
    this.tracker.scopes.follow(on);
  }

  get scope(): RequestScope | undefined {
    return this.tracker.scopes.current;
  }

  announceEndpoints(paths: readonly string[]): void {
    this.endpoints = [...this.endpoints, ...paths];
  }

  provideHealth(check: () => Promise<HealthVerdict>, minReady: ClusterSnapshot['minReady']): void {
    // Only a primary asks for the app's health.
    if (this.#channel === undefined) return;
    this.checkHealth = check;
    this.minReady = minReady;
  }

  provideThreads(threads: ThreadsOfProcess): boolean {
    if (this.#channel === undefined) return false;
    this.threads = threads;
    return true;
  }

  onDrainTasks(pending: (before: number) => boolean): void {
    this.#tasks.push(pending);
  }

  /** Whether any non-request work started before this time and is not done. */
  hasTasksBefore(before: number): boolean {
    // Must call every function, because the call also announces the drain. some() would stop early.
    return this.#tasks.filter((has) => has(before)).length > 0;
  }

  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void {
    this.clients.push({ present, leave } as SentClients);
  }

  /** Does work that no request waits for. Each piece of work waits for an idle interval. */
  afterStart(work: () => unknown): void {
    this.#idleWork = this.#idleWork
      .then(() => untilIdle(50, 0.5, IDLE_PATIENCE_MS))
      .then(work)
      .catch((error: unknown) =>
        this.warn(`background work after startup failed: ${reportError(error).message}`),
      );
  }

  /** Without this call, Nest would end the process without a report. */
  async refuseStart(error: unknown): Promise<void> {
    await this.#channel?.send({ type: 'boot-failed', error: reportError(error) });
  }

  attach(server: unknown): void {
    // In a worker, bootstrap() tracks the servers and reports readiness.
    if (this.#channel !== undefined) return;
    this.#apps += 1;
    if (server !== undefined) this.tracker.follow(server as Server);
    if (this.state === 'starting') this.serve();
  }

  detach(): void {
    this.#apps -= 1;
    if (this.#channel === undefined && this.#apps <= 0) this.end();
  }

  serve(): void {
    this.state = 'ready';
    this.meter.restart();
    this.#startIdleWork();
  }

  /** Ends the measurements. Called when the last app of the process has closed. */
  end(): void {
    this.state = 'draining';
    clearInterval(this.#timer);
    this.meter.stop();
    this.tracker.unfollow();
  }

  /** A snapshot that shows this process as a cluster with one worker. */
  #ownSnapshot(): ClusterSnapshot {
    const { identity, state, minReady } = this;
    const uptimeSeconds = Math.round(process.uptime() * 1_000) / 1_000;
    const balancing = (this.#channel && this.setup.options?.balancing) ?? 'none';
    return snapshotOf([workerSnapshot(identity, this.stats(), { state, uptimeSeconds })], {
      balancing,
      minReady,
      generation: identity.generation,
      leader: state === 'ready' ? identity : null,
    });
  }

  #lastKnown(): AgedSnapshot {
    const known = this.#lastSnapshot;
    // Without a snapshot from the primary, the age is the time since the process started.
    if (known === undefined) {
      return { snapshot: this.#ownSnapshot(), ageMs: Math.round(process.uptime() * 1_000) };
    }
    return { snapshot: known.snapshot, ageMs: Math.round(performance.now() - known.at) };
  }

  #noPrimary(what: string): never {
    const why =
      this.#channel === undefined
        ? 'this process has no primary; start the app with bootstrap() and at least 1 worker'
        : 'the primary of this worker has died; the worker is shutting down';
    throw new ClusterNoPrimaryError(what, why);
  }
}

/** A process without a primary is always the leader. */
function leaderAlone(link: Pick<ProcessLink, 'accepting'>): LeaderRole {
  return {
    get leads() {
      return link.accepting;
    },
    owns: () => link.accepting,
    follow: (listener) => listener({ isFirst: true, done: [] }),
    begun: () => {},
  };
}
