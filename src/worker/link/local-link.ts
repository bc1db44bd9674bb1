import type { ServerResponse } from 'node:http';
import type {
  HubAddress,
  MetricsContribution,
  MetricsSource,
  EnterScope,
  LinkEventListener,
  ResponseObserver,
  ThreadsOfProcess,
  WorkerIdentity,
  WorkerStats,
} from '../../contract/snapshot/index.js';
import { type ClusterEventName, EventListeners } from '../../contract/events/index.js';
import { reportError } from '../../contract/ipc/index.js';
import { silencedBy } from '../../contract/options/doctor-options.interface.js';
import type { FindingName, ResolvedClusterOptions } from '../../contract/options/index.js';
import { farewell } from '../drain/farewell.js';
import type { LocalProcess } from './local-process.js';
import { watchClient } from '../life/watch-client.js';

/** The part of a process's link that no primary is asked for. */
export abstract class LocalLink {
  /** Else that is for the admin listener alone. */
  showsDetails = true;
  #doctor: ResolvedClusterOptions['doctor'] = { warnings: true, ignore: [] };

  /** The listeners to the cluster's events in this process. */
  readonly events = new EventListeners((name, error) =>
    this.warn(`a listener of '${name}' threw: ${reportError(error).message}`),
  );

  readonly #contributions: MetricsContribution[] = [];

  constructor(readonly local: LocalProcess) {}

  /** Its part of the options of `bootstrap()`. */
  follow({ expose, doctor }: ResolvedClusterOptions): void {
    this.showsDetails = expose === 'app';
    this.#doctor = doctor;
  }

  warn(message: string, name?: FindingName): void {
    if (name === undefined) return this.say(message);
    const { warnings, ignore } = this.#doctor;
    if (warnings && !ignore.includes(name)) this.say(`${message}; ${silencedBy(name)}`);
  }

  /** Tells the operator something. */
  protected abstract say(message: string): void;

  get identity(): WorkerIdentity {
    return this.local.identity;
  }

  get accepting(): boolean {
    return this.local.accepting;
  }

  stats(): WorkerStats {
    return this.local.meter.peek();
  }

  provideMetrics(source: MetricsSource): void {
    this.local.metrics = source;
    for (const contribution of this.#contributions) void source.extend?.(contribution);
  }

  contributeMetrics(contribution: MetricsContribution): void {
    this.#contributions.push(contribution);
    void this.local.metrics?.extend?.(contribution);
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
    this.local.tracker.observe(observer);
  }

  followScopes(enter: EnterScope | undefined): void {
    this.local.tracker.followScopes(enter);
  }

  watchClient(response: ServerResponse, gone: () => void): () => void {
    return watchClient(response, gone);
  }

  provideTasks(pending: (before: number) => boolean): void {
    this.local.tasks.push(pending);
  }

  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void {
    this.local.farewells.push((withinMs) => farewell(present, leave, withinMs));
  }

  provideThreads(_threads: ThreadsOfProcess): boolean {
    return false;
  }

  announceEndpoints(paths: readonly string[]): void {
    this.local.endpoints = [...this.local.endpoints, ...paths];
  }
}
