import cluster from 'node:cluster';
import type { Server } from 'node:http';
import inspector from 'node:inspector';
import { setTimeout as delay } from 'node:timers/promises';
import { ClusterError } from '../errors/index.js';
import { type BootPhase, type PrimaryMessage, reportError } from '../ipc/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import type {
  AgedSnapshot,
  ClusterLink,
  ClusterSnapshot,
  CollectedMetrics,
  MetricsSource,
  ResponseObserver,
  WorkerIdentity,
  WorkerStats,
} from '../snapshot/index.js';
import { BootWatch } from './boot-watch.js';
import { drain, type DrainableApp } from './drain.js';
import { addressOf, ALREADY_LISTENING, listen, type ListenableApp } from './listen.js';
import { LocalProcess } from './local-process.js';
import { PendingRequests } from './pending-requests.js';
import { PrimaryChannel } from './primary-channel.js';

/** What an app must be able to do to run in a worker. Any Nest HTTP application can. */
export interface WorkerApp extends DrainableApp, ListenableApp {
  init(): Promise<unknown>;
}

/** A snapshot that takes longer is not worth waiting for: the last one is given. */
const SNAPSHOT_TIMEOUT_MS = 500;

/** The primary gives workers 500 ms; this leaves it time to answer, within a scrape of 1 s. */
const COLLECT_TIMEOUT_MS = 900;

/** Metrics that nobody asks for are sent this often, so that a crash loses little. */
const PUSH_METRICS_MS = 10_000;

/** Time for an error that is thrown to end the process, unless the app has a handler that keeps it. */
const UNCAUGHT_MS = 100;

/** Without a primary a worker serves nobody's purpose: it finishes what it can in this time. */
const ORPHAN_SHUTDOWN = { lameDuckMs: 0, drainTimeoutMs: 1_500, killTimeoutMs: 500 };

/** A worker's side of the cluster: reports to the primary, does what it says, answers the app. */
export class WorkerAgent implements ClusterLink {
  #end!: (exitCode: number) => void;
  /** Resolves with the exit code when this process has nothing left to do. */
  readonly ended = new Promise<number>((resolve) => (this.#end = resolve));
  readonly #local: LocalProcess;
  readonly #channel = new PrimaryChannel();
  readonly #snapshots = new PendingRequests<ClusterSnapshot>(SNAPSHOT_TIMEOUT_MS);
  readonly #collections = new PendingRequests<PrimaryMessage & { type: 'collected' }>(
    COLLECT_TIMEOUT_MS,
  );
  #lastSnapshot: { snapshot: ClusterSnapshot; at: number } | undefined;
  #lastCollected: (PrimaryMessage & { type: 'collected' }) | undefined;
  #app: WorkerApp | undefined;
  #onListen: ((message: PrimaryMessage & { type: 'listen' }, handle: unknown) => void) | undefined;
  #force!: () => void;
  readonly #forced = new Promise<void>((resolve) => (this.#force = resolve));
  readonly #boot = new BootWatch((error) => {
    void this.#channel.send({ type: 'boot-failed', phase: 'create', error });
  });

  constructor(
    identity: WorkerIdentity,
    private readonly options: ResolvedClusterOptions,
  ) {
    this.#local = new LocalProcess(identity, options.balancing);
    this.#channel.onMessage((message, handle) => this.#onMessage(message, handle));
    this.#channel.onClosed(() => this.#onOrphaned());
    // Ctrl-C and a closed terminal reach the whole process group: the primary decides.
    process.on('SIGINT', () => {});
    process.on('SIGHUP', () => {});
    process.on('SIGTERM', () => {
      if (this.#app === undefined) this.#end(0);
      else void this.#channel.send({ type: 'leaving' });
    });
  }

  /** Brings the app up; reports what went wrong and ends otherwise. */
  async run(createApp: () => Promise<WorkerApp> | WorkerApp): Promise<void> {
    let phase: BootPhase = 'create';
    try {
      const app = await createApp();
      const server = app.getHttpServer() as Server;
      this.#local.follow(server);
      let url: string;
      if (server.listening) {
        await this.#channel.send({ type: 'warning', message: ALREADY_LISTENING });
        url = addressOf(server);
      } else {
        phase = 'init';
        await app.init();
        phase = 'listen';
        url = await this.#listen(app);
      }
      this.#boot.end();
      process.once('uncaughtExceptionMonitor', (error) => {
        void this.#channel.send({ type: 'fatal', error: reportError(error) });
      });
      this.#app = app;
      this.#local.state = 'ready';
      await this.#channel.send({ type: 'ready', url, endpoints: this.#local.endpoints });
      void this.snapshot();
    } catch (error) {
      this.#boot.end();
      await this.reportBootFailure(error, phase);
      // Node then prints what no report carries: the whole stack, the place of a syntax error.
      if (phase !== 'listen' && !(error instanceof ClusterError)) throwUncaught(error);
      setTimeout(() => this.#end(1), UNCAUGHT_MS);
    }
  }

  reportBootFailure(error: unknown, phase: BootPhase = 'create'): Promise<void> {
    return this.#channel.send({ type: 'boot-failed', phase, error: reportError(error) });
  }

  async #listen(app: WorkerApp): Promise<string> {
    const granted = new Promise<Parameters<typeof listen>>((resolve) => {
      this.#onListen = ({ target }, handle) => resolve([app, target, handle]);
    });
    await this.#channel.send({ type: 'listen-request' });
    return listen(...(await granted));
  }

  get identity(): WorkerIdentity {
    return this.#local.identity;
  }

  get accepting(): boolean {
    return this.#local.accepting;
  }

  stats(): WorkerStats {
    return this.#local.meter.peek();
  }

  async snapshot(): Promise<AgedSnapshot> {
    const snapshot = await this.#snapshots.ask((id) =>
      this.#channel.send({ type: 'snapshot-request', id, stats: this.#local.meter.peek() }),
    );
    if (snapshot !== undefined) {
      this.#lastSnapshot = { snapshot, at: performance.now() };
      return { snapshot, ageMs: 0 };
    }
    return this.#lastKnown();
  }

  async collectMetrics(): Promise<CollectedMetrics> {
    let body = '';
    const collected = await this.#collections.ask(async (id) => {
      body = await this.#local.serializeMetrics();
      const stats = this.#local.meter.peek();
      await this.#channel.send({ type: 'collect-request', id, stats, body });
    });
    if (collected !== undefined) {
      this.#lastCollected = collected;
      this.#lastSnapshot = { snapshot: collected.snapshot, at: performance.now() };
      return { ...collected, ageMs: 0 };
    }
    const { slot } = this.identity;
    const others = this.#lastCollected?.workers.filter((worker) => worker.slot !== slot) ?? [];
    return {
      ...this.#lastKnown(),
      workers: [
        ...others,
        { slot, ageMs: 0, body: body || (await this.#local.serializeMetrics()) },
      ],
      retired: this.#lastCollected?.retired ?? [],
    };
  }

  provideMetrics(source: MetricsSource): void {
    this.#local.metrics = source;
  }

  observeResponses(observer: ResponseObserver): void {
    this.#local.tracker.observe(observer);
  }

  announceEndpoints(paths: readonly string[]): void {
    this.#local.endpoints = [...this.#local.endpoints, ...paths];
  }

  attach(server: unknown): void {
    this.#local.follow(server);
  }

  detach(): void {
    // The process ends right after its app: there is nothing to keep running without it.
  }

  #lastKnown(): AgedSnapshot {
    return this.#lastSnapshot === undefined
      ? { snapshot: this.#local.snapshot(), ageMs: 0 }
      : {
          snapshot: this.#lastSnapshot.snapshot,
          ageMs: Math.round(performance.now() - this.#lastSnapshot.at),
        };
  }

  #onMessage(message: PrimaryMessage, handle: unknown): void {
    switch (message.type) {
      case 'listen':
        return this.#onListen?.(message, handle);
      case 'ping':
        return this.#onPing(message.seq);
      case 'drain':
        return void this.#leave(this.options.shutdown);
      case 'force':
        return this.#force();
      case 'snapshot':
        return this.#snapshots.answer(message.id, message.snapshot);
      case 'collect':
        return void this.#sendMetrics(true);
      case 'collected':
        return this.#collections.answer(message.id, message);
      case 'fold': {
        const { epoch, bodies } = message;
        const body = this.#local.metrics?.fold(bodies);
        if (body !== undefined) {
          void this.#channel.send({ type: 'folded', epoch, count: bodies.length, body });
        }
        return;
      }
    }
  }

  #onPing(seq: number): void {
    const stats = this.#local.meter.measure();
    const due = performance.now() - this.#local.serializedAt >= PUSH_METRICS_MS;
    if (due && this.#channel.drained) void this.#sendMetrics(false);
    // What is given when the primary does not answer should not be the picture of a cluster that
    // was still booting.
    const known = this.#lastSnapshot?.snapshot;
    if (known === undefined || known.ready < known.desired) void this.snapshot();
    void this.#channel.send({ type: 'pong', seq, stats, debugged: inspector.url() !== undefined });
  }

  async #sendMetrics(asked: boolean): Promise<void> {
    const body = await this.#local.serializeMetrics();
    await this.#channel.send({ type: 'metrics', asked, body });
  }

  /** Drains and ends. While the app is still coming up there is nothing to drain. */
  async #leave(shutdown: ResolvedClusterOptions['shutdown']): Promise<void> {
    if (this.#local.state === 'draining') return;
    this.#local.state = 'draining';
    if (this.#app === undefined) return this.#end(0);
    const report = await drain(this.#app, this.#local.tracker, shutdown, this.#forced);
    await Promise.race([this.#sendMetrics(false), delay(SNAPSHOT_TIMEOUT_MS)]);
    await this.#channel.send({ type: 'drained', report });
    this.#end(report.hookError === null ? 0 : 1);
  }

  #onOrphaned(): void {
    // Keeps node:cluster from ending the process in the middle of a response.
    if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
    this.#snapshots.abandon();
    this.#collections.abandon();
    void this.#leave(ORPHAN_SHUTDOWN);
    // A drain that was under way had been given other times, by a primary that is gone.
    const { drainTimeoutMs, killTimeoutMs } = ORPHAN_SHUTDOWN;
    setTimeout(() => this.#force(), drainTimeoutMs);
    setTimeout(() => this.#end(1), drainTimeoutMs + killTimeoutMs);
  }
}

/** Throws where nothing catches it, as if the app had. */
function throwUncaught(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}
