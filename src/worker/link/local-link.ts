import type { Server, ServerResponse } from 'node:http';
import { type ClusterEventName, EventListeners } from '../../contract/events/index.js';
import { reportError } from '../../contract/ipc/index.js';
import { silencedBy } from '../../contract/options/warning-options.interface.js';
import type { FindingName, ResolvedClusterOptions } from '../../contract/options/index.js';
import { IdleWork } from '../../contract/process/idle-work.js';
import { ProcessMeter } from '../../contract/process/process-meter.js';
import type {
  ClusterSnapshot,
  HubAddress,
  LinkEventListener,
  MetricsContribution,
  MetricsSource,
  RequestScope,
  ResponseObserver,
  ThreadsOfProcess,
  WorkerIdentity,
  WorkerState,
  WorkerStats,
} from '../../contract/snapshot/index.js';
import { sendAway } from '../drain/send-away.js';
import { RequestTracker } from '../http/request-tracker.js';
import { watchClient } from '../http/watch-client.js';
import { OwnMetrics } from './own-metrics.js';
import { snapshotOfOne } from './snapshot-of-one.js';

/** The state and the measurements of a process that serves an app, with a primary or without. */
export abstract class LocalLink {
  state: WorkerState = 'starting';
  /** Whether the app's own port shows details. Otherwise only the admin listener shows them. */
  showsDetails = true;
  #warnings: ResolvedClusterOptions['warnings'] = { shown: true, ignore: [] };
  readonly tracker = new RequestTracker();
  readonly meter = new ProcessMeter();
  readonly metrics = new OwnMetrics();
  endpoints: readonly string[] = [];
  /** The number of workers that must be ready for the cluster to be ready. */
  minReady: ClusterSnapshot['minReady'] = 1;
  /** The work that waits until the process serves. */
  readonly idleWork = new IdleWork((error) =>
    this.warn(`work after the start failed: ${reportError(error).message}`),
  );
  /** The threads for `@CpuBound()` methods. Verified and started when the worker is ready. */
  threads: ThreadsOfProcess | undefined;
  #threadUtilization = 0;
  readonly #tasks: ((before: number) => boolean)[] = [];
  readonly #sendingAway: ((withinMs: number) => Promise<void>)[] = [];

  /** The listeners to the cluster's events in this process. */
  readonly events = new EventListeners((name, error) =>
    this.warn(`a listener of '${name}' threw: ${reportError(error).message}`),
  );

  constructor(
    readonly identity: WorkerIdentity,
    private readonly balancing: string,
    private readonly droppedLogLines: () => number = () => 0,
  ) {}

  /** Takes the options of `bootstrap()` that concern the link. */
  configure({ expose, warnings }: ResolvedClusterOptions): void {
    this.showsDetails = expose === 'app';
    this.#warnings = warnings;
  }

  get accepting(): boolean {
    return this.state === 'ready' || this.state === 'starting';
  }

  warn(message: string, name?: FindingName): void {
    if (name === undefined) return this.say(message);
    const { shown, ignore } = this.#warnings;
    if (shown && !ignore.includes(name)) this.say(`${message}; ${silencedBy(name)}`);
  }

  /** Logs a warning. */
  protected abstract say(message: string): void;

  followServer(server: Server): void {
    this.tracker.follow(server);
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
      logLinesDroppedTotal: this.droppedLogLines(),
      droppedConnectionsTotal: tracker.droppedConnections,
    };
  }

  /** The snapshot of this process as a cluster with one worker. */
  ownSnapshot(): ClusterSnapshot {
    const { identity, state, balancing, minReady } = this;
    return snapshotOfOne(identity, state, this.stats(), { balancing, minReady });
  }

  provideMetrics(source: MetricsSource): void {
    this.metrics.provide(source);
  }

  contributeMetrics(contribution: MetricsContribution): void {
    this.metrics.contribute(contribution);
  }

  findHub(): (() => Promise<HubAddress>) | undefined {
    return undefined;
  }

  onEvent(name: ClusterEventName, listener: LinkEventListener): void {
    this.events.on(name, listener);
  }

  offEvent(name: ClusterEventName, listener: LinkEventListener): void {
    this.events.off(name, listener);
  }

  observeResponses(observer: ResponseObserver): void {
    this.tracker.reports.observer = observer;
  }

  followScopes(on: boolean): void {
    this.tracker.scopes.follow(on);
  }

  get scope(): RequestScope | undefined {
    return this.tracker.scopes.current;
  }

  watchClient(response: ServerResponse, gone: () => void): () => void {
    return watchClient(response, gone);
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
    this.#sendingAway.push((withinMs) => sendAway(present, leave, withinMs));
  }

  /** Makes clients reconnect to other workers. Resolves when the clients have left. Ignores errors. */
  async sendClientsAway(withinMs: number): Promise<void> {
    await Promise.allSettled(this.#sendingAway.map((send) => send(withinMs)));
  }

  provideThreads(_threads: ThreadsOfProcess): boolean {
    return false;
  }

  afterStart(work: () => unknown): void {
    this.idleWork.add(work);
  }

  announceEndpoints(paths: readonly string[]): void {
    this.endpoints = [...this.endpoints, ...paths];
  }
}
