import type { Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type ClusterEventName, EventListeners } from '../../contract/events/index.js';
import { reportError } from '../../contract/ipc/index.js';
import { type FindingName, silencedBy } from '../../contract/options/log.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { ProcessMeter } from '../../contract/process/process-meter.js';
import type {
  ClusterSnapshot,
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
import { RequestTracker } from '../http/request-tracker.js';
import { watchClient } from '../http/watch-client.js';
import { OwnMetrics } from './own-metrics.js';

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

  thread(_name: string): (() => Promise<string>) | undefined {
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

  readonly watchClient = watchClient;

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

/** The CPU time in ms that a reconnecting client costs another worker: about two handshakes. */
const MS_EACH = 2;

const STEP_MS = 10;

/**
 * Tells clients to leave, a few at a time so that other workers are not overloaded, and all of them
 * within `withinMs`. Resolves when all clients have left.
 *
 * @param present returns the current clients. Further clients may come during the drain.
 */
export async function sendAway<T>(
  present: () => readonly T[],
  leave: (one: T) => void,
  withinMs: number,
): Promise<void> {
  const told = new Set<T>();
  const until = performance.now() + withinMs;
  for (let all = present(); all.length > 0; all = present()) {
    const waiting = all.filter((each) => !told.has(each));
    const steps = Math.max(1, (until - performance.now()) / STEP_MS);
    const now = Math.max(STEP_MS / MS_EACH, Math.ceil(waiting.length / steps));
    for (const one of waiting.slice(0, now)) {
      told.add(one);
      leave(one);
    }
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
}

/** The snapshot of a single process, as a cluster with one worker. */
function snapshotOfOne(
  identity: WorkerIdentity,
  state: WorkerState,
  stats: WorkerStats,
  cluster: Pick<ClusterSnapshot, 'balancing' | 'minReady'>,
): ClusterSnapshot {
  const isReady = state === 'ready';
  return {
    ...cluster,
    ports: [],
    desired: 1,
    ready: isReady ? 1 : 0,
    generation: identity.generation,
    degraded: 0,
    reloads: { completed: 0, aborted: 0, reverted: 0 },
    dismissed: [],
    leader: isReady ? identity : null,
    primary: null,
    workers: [
      {
        ...identity,
        state,
        uptimeSeconds: Math.round(process.uptime() * 1_000) / 1_000,
        restarts: 0,
        restartsByCause: {},
        lastExit: null,
        degraded: false,
        abortedRequestsTotal: 0,
        droppedMessagesTotal: 0,
        heartbeatAgeMs: 0,
        responsive: true,
        ...stats,
      },
    ],
  };
}

/** The length of an interval whose use decides, in ms. */
const INTERVAL_MS = 50;

/** The event loop is idle if it has used less than this share of an interval. */
const IDLE_BELOW = 0.5;

/** Maximum wait for an idle interval, in ms. An app under full load has none. */
const PATIENCE_MS = 1_000;

/**
 * Work that a process does once it serves, because no first request needs it. One piece is done
 * after the other, each after an interval in which the event loop was idle.
 */
export class IdleWork {
  /** The process serves from now on. */
  start!: () => void;
  #last: Promise<unknown> = new Promise<void>((resolve) => (this.start = resolve));

  /** @param failed is called with the error of a piece. The other pieces are done anyway. */
  constructor(private readonly failed: (error: unknown) => void) {}

  add(piece: () => unknown): void {
    this.#last = this.#last.then(untilIdle).then(piece).catch(this.failed);
  }
}

async function untilIdle(): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const before = performance.eventLoopUtilization();
    await delay(INTERVAL_MS, undefined, { ref: false });
    const { utilization } = performance.eventLoopUtilization(before);
    if (utilization < IDLE_BELOW || performance.now() >= deadline) return;
  }
}
