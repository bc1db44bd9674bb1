import { ClusterAddressError, ClusterNoPrimaryError } from '../../contract/errors/index.js';
import type { ClusterEventName } from '../../contract/events/index.js';
import { type PrimaryMessage, reportError } from '../../contract/ipc/index.js';
import { checkSlot, checkWorkerCount } from '../../contract/options/schema.js';
import {
  type AgedSnapshot,
  type ClusterLink,
  type ClusterSnapshot,
  type CollectedMetrics,
  type HealthVerdict,
  type LinkEventListener,
  type ReloadResult,
  type RestartResult,
  SCRAPE_TIMEOUT_MS,
  type ThreadsOfProcess,
  type WorkerIdentity,
} from '../../contract/snapshot/index.js';
import { ConnectionLimit } from '../http/connection-limit.js';
import { WorkerLeaderRole } from '../life/worker-leader-role.js';
import { LocalLink } from './local-link.js';
import { type AnswerMessage, PendingRequests } from './pending-requests.js';
import type { PrimaryChannel } from './primary-channel.js';

/** If the primary does not send a snapshot within this time, the last snapshot is used. */
export const SNAPSHOT_TIMEOUT_MS = 500;

/** Maximum wait for the address of a thread; after it the call fails. A thread needs about 0.1 s to start. */
const THREAD_TIMEOUT_MS = 5_000;

/** A worker's link to its primary. Asks about the cluster, and keeps the last snapshot. */
export class WorkerLink extends LocalLink implements ClusterLink {
  /** Checks the app's health. An app that does not import `ClusterModule` always counts as healthy. */
  checkHealth: () => Promise<HealthVerdict> = async () => ({ healthy: true, detail: null });
  readonly bootstrapped = true;
  readonly leaderRole: WorkerLeaderRole;
  readonly connectionLimit = new ConnectionLimit(this.tracker, (message) => this.say(message));
  readonly #pending = new PendingRequests();
  #subscribing = false;
  #lastSnapshot: { snapshot: ClusterSnapshot; at: number } | undefined;

  constructor(
    identity: WorkerIdentity,
    private readonly channel: PrimaryChannel,
    readonly workers: number,
    balancing: string,
    droppedLogLines?: () => number,
  ) {
    super(identity, balancing, droppedLogLines);
    this.leaderRole = new WorkerLeaderRole((message) => void channel.send(message));
  }

  answer(message: AnswerMessage): void {
    this.#pending.answer(message);
  }

  /** The primary is gone: ends all waiting requests. */
  abandon(): void {
    this.#pending.abandon();
  }

  override onEvent(name: ClusterEventName, listener: LinkEventListener): void {
    super.onEvent(name, listener);
    this.#subscribe();
  }

  override offEvent(name: ClusterEventName, listener: LinkEventListener): void {
    super.offEvent(name, listener);
    this.#subscribe();
  }

  hear({ name, event, missed }: PrimaryMessage & { type: 'event' }): void {
    if (missed > 0) this.warn('missed events of the cluster: it did not read them in time');
    this.events.call(name as ClusterEventName, event as never);
  }

  /** Tells the primary which events have listeners. Several changes in one turn share one message. */
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

  /** Whether the last snapshot shows a cluster that is still starting. */
  get knowsLittle(): boolean {
    const known = this.#lastSnapshot?.snapshot;
    return known === undefined || known.ready < known.desired;
  }

  async snapshot(): Promise<AgedSnapshot> {
    const answer = await this.#pending.askOnce(
      'snapshot',
      (id) => this.channel.send({ type: 'snapshot-request', id, stats: this.stats() }),
      SNAPSHOT_TIMEOUT_MS,
    );
    if (answer === undefined) return this.#lastKnown();
    const { snapshot } = answer;
    this.#lastSnapshot = { snapshot, at: performance.now() };
    return { snapshot, ageMs: 0 };
  }

  async collectMetrics(): Promise<CollectedMetrics> {
    const answer = await this.#pending.askOnce(
      'collected',
      async (id) => {
        const metrics = await this.metrics.serialize();
        await this.channel.send({ type: 'collect-request', id, stats: this.stats(), ...metrics });
      },
      SCRAPE_TIMEOUT_MS,
    );
    if (answer === undefined) {
      const { snapshot, ageMs: snapshotAgeMs } = this.#lastKnown();
      return { snapshot, workers: [], retired: [], snapshotAgeMs };
    }
    const { snapshot, workers, retired } = answer;
    this.#lastSnapshot = { snapshot, at: performance.now() };
    return { snapshot, workers, retired };
  }

  async reload(): Promise<ReloadResult> {
    const answer = await this.#pending.askOnce('reloaded', (id) =>
      this.channel.send({ type: 'reload-request', id }),
    );
    return answer?.result ?? primaryIsGone('reload()');
  }

  async scale(workers: number): Promise<ClusterSnapshot> {
    checkWorkerCount(workers);
    const answer = await this.#pending.ask<'scaled' | 'scale-refused'>((id) =>
      this.channel.send({ type: 'scale-request', id, workers }),
    );
    if (answer?.type === 'scale-refused') {
      throw new ClusterAddressError(answer.address, answer.cause);
    }
    return answer?.snapshot ?? primaryIsGone('scale()');
  }

  async restart(slot: number): Promise<RestartResult> {
    checkSlot(slot);
    const answer = await this.#pending.ask<'restarted'>((id) =>
      this.channel.send({ type: 'restart-request', id, slot }),
    );
    return answer?.result ?? primaryIsGone('restart()');
  }

  override thread(name: string): () => Promise<string> {
    return async () => {
      const answer = await this.#pending.ask<'thread' | 'thread-refused'>(
        (id) => this.channel.send({ type: 'thread-request', id, name }),
        THREAD_TIMEOUT_MS,
      );
      if (answer === undefined) throw new Error('the primary does not answer');
      if (answer.type === 'thread-refused') throw new Error(answer.reason);
      return answer.path;
    };
  }

  provideHealth(check: () => Promise<HealthVerdict>, minReady: ClusterSnapshot['minReady']): void {
    this.checkHealth = check;
    this.minReady = minReady;
  }

  override provideThreads(threads: ThreadsOfProcess): boolean {
    this.threads = threads;
    return true;
  }

  async reportBootFailure(error: unknown): Promise<void> {
    await this.channel.send({ type: 'boot-failed', error: reportError(error) });
  }

  // Nothing to do: `bootstrap()` has added the app's servers, and the process ends right after its app.
  attach(): void {}
  detach(): void {}

  #lastKnown(): AgedSnapshot {
    const known = this.#lastSnapshot;
    // Without a snapshot from the primary, the age is the time since the process started.
    if (known === undefined) {
      return { snapshot: this.ownSnapshot(), ageMs: Math.round(process.uptime() * 1_000) };
    }
    return { snapshot: known.snapshot, ageMs: Math.round(performance.now() - known.at) };
  }
}

function primaryIsGone(what: string): never {
  throw new ClusterNoPrimaryError(what, 'the primary of this worker is gone; the worker is ending');
}
