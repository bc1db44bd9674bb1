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

/** Maximum wait for the address of a thread; after it the call fails. A thread needs about 0.1 s to start. */
const THREAD_TIMEOUT_MS = 5_000;

/** How often the event loop is measured in a process without heartbeats. */
const MEASURE_MS = 1_000;

/** An interval in ms, the share below which it is idle, and the maximum wait: an app under full load has none. */
const IDLE = [50, 0.5, 1_000] as const;

interface LinkSetup {
  /** The options of `bootstrap()`; missing without `bootstrap()`. */
  readonly options?: Pick<ResolvedClusterOptions, 'balancing' | 'expose' | 'warnings'>;
  readonly droppedLogLines?: () => number;
  /** Logs a warning. */
  readonly say?: (message: string) => void;
  /** Missing in a process without a primary. */
  readonly worker?: {
    readonly identity: WorkerIdentity;
    readonly workers: number;
    readonly channel: PrimaryChannel;
    readonly leaderRole: LeaderRole;
  };
}

/** Clients of one kind, for example of Socket.IO. */
export interface SentClients {
  readonly present: () => readonly unknown[];
  readonly leave: (one: unknown) => void;
}

/** The link of this process, and the state and the measurements of the app that it serves. */
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
  /** The number of workers that must be ready for the cluster to be ready. */
  minReady: ClusterSnapshot['minReady'] = 1;
  /** Checks the app's health. An app that does not import `ClusterModule` always counts as healthy. */
  checkHealth: () => Promise<HealthVerdict> = async () => ({ healthy: true, detail: null });
  /** The threads for `@CpuBound()` methods. Verified and started when the worker is ready. */
  threads: ThreadsOfProcess | undefined;
  readonly events = new EventListeners((message, error) =>
    this.warn(`${message}: ${error.message}`),
  );
  readonly watchClient = watchClient;
  readonly #channel: PrimaryChannel | undefined;
  #threadUtilization = 0;
  readonly #tasks: ((before: number) => boolean)[] = [];
  /** The clients to send away in a drain. */
  readonly clients: SentClients[] = [];
  #metrics: MetricsSource | undefined;
  readonly #contributions: MetricsContribution[] = [];
  /** The metrics as they were last serialized, and when that was, in monotonic ms. */
  #lastMetrics = '';
  metricsAt = -Infinity;
  /** Whether the metrics have been sent for the last time. */
  isSealed = false;
  #lastSnapshot: { readonly snapshot: ClusterSnapshot; readonly at: number } | undefined;
  /** Measures a process that gets no heartbeats. */
  readonly #timer: NodeJS.Timeout | undefined;
  #apps = 0;
  #startIdleWork!: () => void;
  /** Resolves when the process serves, and the work that was given to {@link afterStart} is done. */
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
    const { options, say = () => {} } = this.setup;
    if (name === undefined) return say(message);
    const { shown, ignore } = options?.warnings ?? { shown: true, ignore: [] };
    if (shown && !ignore.includes(name)) say(`${message}; ${silencedBy(name)}`);
  }

  /** Ends an interval of the measurements. Called at each heartbeat. */
  measure(): WorkerStats {
    this.meter.measure();
    this.#threadUtilization = this.threads?.utilization() ?? 0;
    return this.stats();
  }

  /** Returns current values if reading them is cheap, otherwise values of the last interval. */
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

  /** The metrics of this process. If they cannot be read, or are too long, or sealed: as they were last. */
  async serializeMetrics(): Promise<{ readonly body: string; readonly ageMs: number }> {
    // Ignores errors, because the source has logged them.
    const body = this.isSealed ? undefined : await this.#metrics?.serialize().catch(() => {});
    if (body !== undefined && body.length <= MAX_METRICS_BODY_LENGTH) {
      this.#lastMetrics = body;
      this.metricsAt = performance.now();
    }
    const ageMs = this.#lastMetrics === '' ? 0 : Math.round(performance.now() - this.metricsAt);
    return { body: this.#lastMetrics, ageMs };
  }

  /** Whether the last snapshot shows a cluster that is still starting. */
  get knowsLittle(): boolean {
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

  /** Calls the listeners of an event that the primary has sent. */
  receive({ name, event, missed }: PrimaryMessage & { readonly type: 'event' }): void {
    if (missed > 0) this.warn('dropped cluster events: it did not read them in time');
    this.events.call(name as ClusterEventName, event as never);
  }

  #subscribe(): void {
    void this.#channel?.send({ type: 'subscribe', events: this.events.names });
  }

  provideMetrics(source: MetricsSource): void {
    this.#metrics = source;
    for (const contribution of this.#contributions) void source.extend?.(contribution);
  }

  contributeMetrics(contribution: MetricsContribution): void {
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
    // Only a primary asks for the app's health. A process without one is the whole cluster.
    if (this.#channel === undefined) return;
    this.checkHealth = check;
    this.minReady = minReady;
  }

  provideThreads(threads: ThreadsOfProcess): boolean {
    if (this.#channel === undefined) return false;
    this.threads = threads;
    return true;
  }

  provideTasks(pending: (before: number) => boolean): void {
    this.#tasks.push(pending);
  }

  /** Whether the drain has to wait for earlier work other than requests. */
  hasTasksFrom(before: number): boolean {
    // Calls all functions, even after one has returned true: the call also announces the drain.
    return this.#tasks.filter((has) => has(before)).length > 0;
  }

  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void {
    this.clients.push({ present, leave } as SentClients);
  }

  /** Does work that no first request needs, one piece after the other, each after an idle interval. */
  afterStart(work: () => unknown): void {
    this.#idleWork = this.#idleWork
      .then(() => untilIdle(...IDLE))
      .then(work)
      .catch((error: unknown) =>
        this.warn(`work after the start failed: ${reportError(error).message}`),
      );
  }

  async reportBootFailure(error: unknown): Promise<void> {
    await this.#channel?.send({ type: 'boot-failed', error: reportError(error) });
  }

  attach(server: unknown): void {
    // bootstrap() follows the servers of a worker, and reports when it is ready.
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

  /** Ends the measurements: the process no longer serves. */
  end(): void {
    this.state = 'draining';
    clearInterval(this.#timer);
    this.meter.stop();
    this.tracker.unfollow();
  }

  /** The snapshot of this process as a cluster with one worker. */
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
        ? 'this process runs alone; start the app with bootstrap() and at least 1 worker'
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
