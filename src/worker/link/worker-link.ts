import { AddressUnavailableError, NoPrimaryError } from '../../contract/errors/index.js';
import type { ClusterEventName } from '../../contract/events/index.js';
import {
  type ExaminationMessage,
  type PrimaryMessage,
  reportError,
} from '../../contract/ipc/index.js';
import { checkSlot, checkWorkerCount } from '../../contract/options/index.js';
import {
  type AgedSnapshot,
  type ClusterLink,
  type ClusterSnapshot,
  type CollectedMetrics,
  type HealthVerdict,
  type HubAddress,
  type LinkEventListener,
  type RelayLimit,
  type ReloadResult,
  type RestartResult,
  SCRAPE_TIMEOUT_MS,
  type ThreadsOfProcess,
} from '../../contract/snapshot/index.js';
import { LocalLink } from './local-link.js';
import type { LocalProcess } from './local-process.js';
import { type AnswerMessage, PendingRequests } from './pending-requests.js';
import type { PrimaryChannel } from './primary-channel.js';
import { WorkerLeaderRole } from '../life/worker-leader-role.js';
import { WorkerPassage } from '../listen/worker-passage.js';

/** A snapshot that takes longer is not worth waiting for: the last one is given. */
export const SNAPSHOT_TIMEOUT_MS = 500;

/** A reload has no length of its own: it ends, or the primary does. */
const NO_TIMEOUT = Infinity;

/** A thread starts in a tenth of a second; a primary that is blocked is asked again. */
const HUB_TIMEOUT_MS = 5_000;

/** A worker that should be replaced says so this often. */
const ASK_AGAIN_MS = 15_000;

/** A worker's view of the cluster: asks the primary, and keeps its last answer. */
export class WorkerLink extends LocalLink implements ClusterLink {
  /** How the app says whether it is well; without the module nobody does. */
  checkHealth: () => Promise<HealthVerdict> = async () => ({ healthy: true, detail: null });
  /** What is to be done about them once the worker is ready; `undefined` without `@CpuBound()` methods. */
  threads: ThreadsOfProcess | undefined;
  readonly #snapshots = new PendingRequests<ClusterSnapshot>(SNAPSHOT_TIMEOUT_MS);
  readonly #collections = new PendingRequests<CollectedMetrics>(SCRAPE_TIMEOUT_MS);
  readonly #reloads = new PendingRequests<ReloadResult>(NO_TIMEOUT);
  readonly #restarts = new PendingRequests<RestartResult>(NO_TIMEOUT);
  readonly #scalings = new PendingRequests<ClusterSnapshot | AddressUnavailableError>(NO_TIMEOUT);
  readonly #hubs = new PendingRequests<HubAddress | string>(HUB_TIMEOUT_MS);
  readonly bootstrapped = true;
  readonly leaderRole: WorkerLeaderRole;
  readonly passage: WorkerPassage;
  #subscribing = false;
  #asking: NodeJS.Timeout | undefined;
  #lastSnapshot: { snapshot: ClusterSnapshot; at: number } | undefined;

  constructor(
    local: LocalProcess,
    private readonly channel: PrimaryChannel,
    readonly workers: number = 1,
    limit?: RelayLimit,
  ) {
    super(local);
    this.leaderRole = new WorkerLeaderRole((message) => void channel.send(message));
    this.passage = new WorkerPassage(channel, limit);
  }

  /** Takes in an answer of the primary. */
  answer(message: AnswerMessage): void {
    switch (message.type) {
      case 'snapshot':
        return this.#snapshots.answer(message.id, message.snapshot);
      case 'collected': {
        const { id, snapshot, workers, retired } = message;
        return this.#collections.answer(id, { snapshot, workers, retired });
      }
      case 'reloaded':
        return this.#reloads.answer(message.id, message.result);
      case 'restarted':
        return this.#restarts.answer(message.id, message.result);
      case 'scaled':
        return this.#scalings.answer(message.id, message.snapshot);
      case 'hub':
        return this.#hubs.answer(message.id, message);
      case 'hub-refused':
        return this.#hubs.answer(message.id, message.reason);
      case 'scale-refused':
        return this.#scalings.answer(
          message.id,
          new AddressUnavailableError(message.address, message.cause),
        );
    }
  }

  override onEvent(name: ClusterEventName, listener: LinkEventListener): void {
    super.onEvent(name, listener);
    this.#subscribe();
  }

  override offEvent(name: ClusterEventName, listener: LinkEventListener): void {
    super.offEvent(name, listener);
    this.#subscribe();
  }

  /** Takes in an event of the cluster. */
  hear({ name, event, missed }: PrimaryMessage & { type: 'event' }): void {
    if (missed > 0) this.warn('missed events of the cluster: it did not read them in time');
    this.events.call(name as ClusterEventName, event as never);
  }

  /** Says what it wants to be told of: once for all that are added or taken away together. */
  #subscribe(): void {
    if (this.#subscribing) return;
    this.#subscribing = true;
    queueMicrotask(() => {
      this.#subscribing = false;
      void this.channel.send({ type: 'subscribe', events: this.events.names });
    });
  }

  protected say(message: string): void {
    void this.channel.send({ type: 'warning', message });
  }

  /** Tells a doctor what was seen of the app. */
  reportExamination(report: Omit<ExaminationMessage, 'type'>): void {
    void this.channel.send({ type: 'examined', ...report });
  }

  /** The primary is gone: nobody will answer any more. */
  abandon(): void {
    const asked = [this.#snapshots, this.#collections, this.#reloads, this.#restarts];
    for (const pending of [...asked, this.#scalings, this.#hubs]) pending.abandon();
  }

  /** Whether what would be given without the primary is the picture of a cluster that still boots. */
  get knowsLittle(): boolean {
    const known = this.#lastSnapshot?.snapshot;
    return known === undefined || known.ready < known.desired;
  }

  async snapshot(): Promise<AgedSnapshot> {
    const snapshot = await this.#snapshots.ask((id) =>
      this.channel.send({ type: 'snapshot-request', id, stats: this.local.meter.peek() }),
    );
    if (snapshot !== undefined) {
      this.#lastSnapshot = { snapshot, at: performance.now() };
      return { snapshot, ageMs: 0 };
    }
    return this.#lastKnown();
  }

  async collectMetrics(): Promise<CollectedMetrics> {
    const collected = await this.#collections.ask(async (id) => {
      const metrics = await this.local.serializeMetrics();
      const stats = this.local.meter.peek();
      await this.channel.send({ type: 'collect-request', id, stats, ...metrics });
    });
    if (collected === undefined) {
      const { snapshot, ageMs: snapshotAgeMs } = this.#lastKnown();
      return { snapshot, workers: [], retired: [], snapshotAgeMs };
    }
    this.#lastSnapshot = { snapshot: collected.snapshot, at: performance.now() };
    return collected;
  }

  async reload(): Promise<ReloadResult> {
    const result = await this.#reloads.ask((id) =>
      this.channel.send({ type: 'reload-request', id }),
    );
    return result ?? primaryIsGone('reload()');
  }

  async scale(workers: number): Promise<ClusterSnapshot> {
    checkWorkerCount(workers);
    const result = await this.#scalings.askAlone((id) =>
      this.channel.send({ type: 'scale-request', id, workers }),
    );
    if (result instanceof AddressUnavailableError) throw result;
    return result ?? primaryIsGone('scale()');
  }

  async restart(slot: number): Promise<RestartResult> {
    checkSlot(slot);
    const result = await this.#restarts.askAlone((id) =>
      this.channel.send({ type: 'restart-request', id, slot }),
    );
    return result ?? primaryIsGone('restart()');
  }

  override findHub(): () => Promise<HubAddress> {
    return async () => {
      const answer = await this.#hubs.ask((id) => this.channel.send({ type: 'hub-request', id }));
      if (answer === undefined) throw new Error('the primary does not answer');
      if (typeof answer === 'string') throw new Error(answer);
      return { path: answer.path, token: answer.token };
    };
  }

  provideHealth(check: () => Promise<HealthVerdict>, minReady: ClusterSnapshot['minReady']): void {
    this.checkHealth = check;
    this.local.minReady = minReady;
  }

  override provideThreads(threads: ThreadsOfProcess): boolean {
    this.threads = threads;
    return true;
  }

  requestReplacement(reason: string): void {
    if (this.#asking !== undefined) return;
    const ask = () => void this.channel.send({ type: 'replace-request', reason });
    ask();
    // The replacement may not come up.
    this.#asking = setInterval(ask, ASK_AGAIN_MS).unref();
  }

  async reportBootFailure(error: unknown): Promise<void> {
    await this.channel.send({ type: 'boot-failed', phase: 'create', error: reportError(error) });
  }

  attach(server: unknown): void {
    if (server !== undefined) this.local.follow(server);
  }

  detach(): void {
    // The process ends right after its app: there is nothing to keep running without it.
  }

  #lastKnown(): AgedSnapshot {
    return this.#lastSnapshot === undefined
      ? // It has heard nothing of the others since it began.
        { snapshot: this.local.snapshot(), ageMs: Math.round(process.uptime() * 1_000) }
      : {
          snapshot: this.#lastSnapshot.snapshot,
          ageMs: Math.round(performance.now() - this.#lastSnapshot.at),
        };
  }
}

function primaryIsGone(what: string): never {
  throw new NoPrimaryError(what, 'the primary of this worker is gone; the worker is ending');
}
