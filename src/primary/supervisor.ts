import {
  AddressUnavailableError,
  ClusterConfigurationError,
  type ClusterError,
  isAddressErrorCode,
  WorkersFailedError,
} from '../errors/index.js';
import type { EmitEvent } from '../events/index.js';
import { isOurs, parseWorkerMessage, reportError, type WorkerMessage } from '../ipc/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import type { ClusterSnapshot, RetireCause } from '../snapshot/index.js';
import { forkWorker, listenToWorker } from './fork-worker.js';
import { Heartbeat } from './heartbeat.js';
import type { ListeningSocket } from './listening-socket.js';
import { MetricsRelay } from './metrics-relay.js';
import { classifyFailure, describeExit, type ProcessExit } from './policies/exit-cause.policy.js';
import { reasonToGiveUp } from './policies/give-up.policy.js';
import { decideRestart, recordFailure } from './policies/restart.policy.js';
import { Slot } from './slot.js';
import { takeSnapshot } from './take-snapshot.js';
import { WorkerHandle } from './worker-handle.js';

/** Everything that can happen to a running cluster. */
type SupervisorEvent =
  | { type: 'restart-due'; slot: Slot }
  | { type: 'message'; worker: WorkerHandle; message: unknown }
  | { type: 'channel-error'; worker: WorkerHandle; error: Error }
  | { type: 'exit'; worker: WorkerHandle; exit: ProcessExit }
  | { type: 'ready-overdue'; worker: WorkerHandle }
  | { type: 'exit-overdue'; worker: WorkerHandle }
  | { type: 'stable'; worker: WorkerHandle }
  | { type: 'heartbeat-due' }
  | { type: 'stop'; reason: string; signalNumber: number };

/** A worker that is only starting has nothing to finish: it ends at once, or is killed after this. */
const ABANDON_BOOT_MS = 1_000;

/** Time for an exit to travel, on top of what the worker was promised. */
const EXIT_GRACE_MS = 500;

/** How hard the cluster has been asked to stop. */
const FORCE_LEVELS = ['drain', 'destroy', 'kill'] as const;

/**
 * Keeps the workers up. One event queue, one handler an event; what to do is
 * decided by the pure functions of `policies/`.
 */
export class Supervisor {
  readonly slots: readonly Slot[];
  #resolveServing!: () => void;
  #resolveEnded!: (exitCode: number) => void;
  /** Resolves once the first worker is ready. */
  readonly serving = new Promise<void>((resolve) => (this.#resolveServing = resolve));
  /** Resolves with the exit code once no worker is left. */
  readonly ended = new Promise<number>((resolve) => (this.#resolveEnded = resolve));
  readonly generation = 0;

  readonly #queue: SupervisorEvent[] = [];
  #handling = false;
  #everReady = false;
  #failures = 0;
  /** Messages that claimed to be ours and were not. */
  #malformedMessages = 0;
  /** `undefined` while running; else the times the cluster was asked to stop, from 0. */
  #stopLevel: number | undefined;
  #exitCode = 0;
  readonly #heartbeat: Heartbeat;
  readonly #relay: MetricsRelay;
  readonly #heartbeatTimer: NodeJS.Timeout;

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly socket: ListeningSocket,
    private readonly emit: EmitEvent,
  ) {
    this.slots = Array.from({ length: options.workers }, (_, index) => new Slot(index));
    this.#heartbeat = new Heartbeat(options.heartbeat);
    this.#relay = new MetricsRelay(
      () => this.#workers(),
      () => this.snapshot(),
    );
    this.#heartbeatTimer = setInterval(
      () => this.#post({ type: 'heartbeat-due' }),
      options.heartbeat.intervalMs,
    );
    for (const slot of this.slots) this.#fork(slot);
  }

  /** Asks the cluster to stop; each further call asks harder: drain, destroy, kill. */
  stop(reason: string, signalNumber = 0): void {
    this.#post({ type: 'stop', reason, signalNumber });
  }

  snapshot(): ClusterSnapshot {
    const { slots, generation, options } = this;
    const { balancing, workers: desired } = options;
    return takeSnapshot({ balancing, desired, generation, slots }, performance.now());
  }

  #post(event: SupervisorEvent): void {
    this.#queue.push(event);
    if (this.#handling) return;
    this.#handling = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      try {
        this.#handle(next);
      } catch (error) {
        // One bad event must not end the loop that keeps all workers.
        this.emit('warning', {
          message: `unexpected error on ${next.type}`,
          error: reportError(error),
        });
      }
    }
    this.#handling = false;
  }

  #handle(event: SupervisorEvent): void {
    switch (event.type) {
      case 'restart-due':
        if (this.#stopLevel === undefined && !event.slot.current) this.#fork(event.slot);
        return;
      case 'message':
        return this.#onMessage(event.worker, event.message);
      case 'channel-error':
        // Expected while a worker ends; its exit tells the rest.
        if (event.worker.state !== 'exited') event.worker.error ??= reportError(event.error);
        return;
      case 'exit':
        return this.#onExit(event.worker, event.exit);
      case 'ready-overdue':
        if (event.worker.state !== 'starting') return;
        event.worker.error = {
          name: 'Error',
          message: `boot timed out: not ready within ${this.options.readyTimeoutMs} ms (readyTimeoutMs)`,
        };
        event.worker.kill('SIGKILL');
        return;
      case 'exit-overdue':
        event.worker.overdue = true;
        event.worker.kill('SIGKILL');
        return;
      case 'stable':
        this.#slotOf(event.worker).degraded = false;
        return;
      case 'heartbeat-due':
        return this.#onHeartbeat();
      case 'stop':
        return this.#onStop(event.reason, event.signalNumber);
    }
  }

  #fork(slot: Slot): void {
    const { generation } = this;
    const child = forkWorker({ slot: slot.index, generation, primaryPid: process.pid });
    const worker = new WorkerHandle(
      { slot: slot.index, generation, pid: child.process.pid ?? 0 },
      child,
    );
    slot.current = worker;
    listenToWorker(child, {
      message: (message) => this.#post({ type: 'message', worker, message }),
      channelError: (error) => this.#post({ type: 'channel-error', worker, error }),
      exit: (exit) => this.#post({ type: 'exit', worker, exit }),
    });
    worker.after(this.options.readyTimeoutMs, () => this.#post({ type: 'ready-overdue', worker }));
  }

  #onMessage(worker: WorkerHandle, raw: unknown): void {
    const message = parseWorkerMessage(raw);
    if (message === undefined) {
      // The app's own messages pass by; only a broken one of ours is worth a line, once.
      if (isOurs(raw) && this.#malformedMessages++ === 0) {
        this.emit('warning', { message: 'dropped a malformed message', worker: worker.identity });
      }
      return;
    }
    const now = performance.now();
    worker.seenAt = now;
    switch (message.type) {
      case 'listen-request':
        worker.send(
          { type: 'listen', target: this.socket.target, held: this.socket.handle !== undefined },
          this.socket.handle,
        );
        return;
      case 'ready':
        return this.#onReady(worker, message, now);
      case 'boot-failed':
        worker.error = message.error;
        if (message.error.code === 'CLUSTER_CONFIGURATION' && !this.#everReady) {
          return this.#giveUp(new ClusterConfigurationError(message.error.message));
        }
        if (
          message.phase === 'listen' &&
          !this.#everReady &&
          isAddressErrorCode(message.error.code)
        ) {
          const cause = Object.assign(new Error(message.error.message), {
            code: message.error.code!,
          });
          this.#giveUp(new AddressUnavailableError(this.socket.url, cause));
        }
        return;
      case 'fatal':
        worker.error = message.error;
        return;
      case 'pong':
        return this.#heartbeat.pong(worker, message, now);
      case 'leaving':
        return this.#onLeaving(worker);
      case 'drained':
        worker.drain = message.report;
        return;
      case 'snapshot-request':
        worker.stats = message.stats;
        worker.send({ type: 'snapshot', id: message.id, snapshot: this.snapshot() });
        return;
      case 'collect-request':
        worker.stats = message.stats;
        this.#relay.store(worker, message.body, now);
        return this.#relay.collect(worker, message.id);
      case 'metrics':
        this.#relay.store(worker, message.body, now);
        if (message.asked) this.#relay.answered(worker);
        return;
      case 'folded':
        return this.#relay.folded(worker, message.epoch, message.count, message.body);
    }
  }

  #onReady(worker: WorkerHandle, message: WorkerMessage & { type: 'ready' }, now: number): void {
    if (!worker.enter('ready')) return;
    worker.readyAt = now;
    worker.error = null;
    worker.after(this.options.restart.stableAfterMs, () => this.#post({ type: 'stable', worker }));
    this.emit('worker-ready', { worker: worker.identity, bootMs: now - worker.startedAt });
    this.#relay.foldIfNeeded();
    if (this.#everReady) return;
    this.#everReady = true;
    const { workers, balancing } = this.options;
    this.emit('listening', { url: message.url, workers, balancing, endpoints: message.endpoints });
    this.#resolveServing();
  }

  /** A worker received SIGTERM itself: it drains, and its slot gets another at once. */
  #onLeaving(worker: WorkerHandle): void {
    if (worker.retirement !== undefined || worker.state === 'exited') return;
    const slot = this.#slotOf(worker);
    this.#retire(worker, 'signal');
    if (this.#stopLevel === undefined) this.#fork(slot);
  }

  #onExit(worker: WorkerHandle, exit: ProcessExit): void {
    const stateBefore = worker.state;
    if (!worker.enter('exited')) return;
    const slot = this.#slotOf(worker);
    slot.remove(worker);
    this.#relay.retire(worker);
    const cause = worker.retirement?.cause ?? classifyFailure(stateBefore, exit, worker.hung);
    slot.lastExit = { cause, ...exit, at: new Date().toISOString() };
    if (worker.retirement !== undefined) this.#reportRetired(worker, exit);
    else this.#onFailure(slot, worker, exit, stateBefore);
    if (this.#stopLevel !== undefined && this.#workers().length === 0) this.#end();
  }

  #onFailure(
    slot: Slot,
    worker: WorkerHandle,
    exit: ProcessExit,
    stateBefore: WorkerHandle['state'],
  ): void {
    const now = performance.now();
    const cause = classifyFailure(stateBefore, exit, worker.hung);
    this.emit('worker-died', {
      worker: worker.identity,
      cause,
      detail: worker.hung
        ? `it did not answer for ${this.options.heartbeat.timeoutMs} ms and was killed`
        : describeExit(exit),
      uptimeMs: now - worker.startedAt,
      error: worker.error,
    });
    this.#failures += 1;
    const livedMs = worker.readyAt === undefined ? 0 : now - worker.readyAt;
    const { restart } = this.options;
    slot.failures = recordFailure(slot.failures, livedMs, now, restart);
    const { delayMs, degraded } = decideRestart(slot.failures, now, restart, Math.random());
    slot.degraded = degraded;
    if (this.#stopLevel !== undefined) return;
    const { slots } = this;
    const reason = reasonToGiveUp({ everReady: this.#everReady, failures: this.#failures, slots });
    if (reason !== undefined) {
      const last = worker.error ?? {
        name: 'Error',
        message: `the last one ${describeExit(exit)}; its output is above`,
      };
      return this.#giveUp(new WorkersFailedError(reason, { cause: last }));
    }
    slot.countRestart(cause);
    this.emit('worker-restarting', {
      slot: slot.index,
      delayMs,
      failures: slot.failures.inARow,
      degraded,
    });
    slot.restartTimer = setTimeout(() => this.#post({ type: 'restart-due', slot }), delayMs);
  }

  #reportRetired(worker: WorkerHandle, exit: ProcessExit): void {
    const { cause, since } = worker.retirement!;
    const report = worker.drain;
    const clean = exit.code === 0 && !worker.overdue;
    const how = worker.overdue ? 'it did not end in time and was killed' : describeExit(exit);
    this.emit('worker-stopped', {
      worker: worker.identity,
      cause,
      drainMs: performance.now() - since,
      destroyedConnections: report?.destroyedConnections ?? 0,
      abortedRequests: report?.abortedRequests ?? 0,
      problem: report?.hookError ?? (clean ? null : how),
    });
  }

  #onHeartbeat(): void {
    for (const worker of this.#heartbeat.tick(this.#workers(), performance.now())) {
      worker.hung = true;
      // Nothing gentler works: its event loop reads no message and runs no handler.
      worker.kill('SIGKILL');
    }
  }

  #onStop(reason: string, signalNumber: number): void {
    const level = this.#stopLevel === undefined ? 0 : Math.min(this.#stopLevel + 1, 2);
    this.#stopLevel = level;
    if (level > 0 && signalNumber > 0) this.#exitCode = 128 + signalNumber;
    const workers = this.#workers();
    this.emit('stopping', { reason, workers: workers.length, force: FORCE_LEVELS[level]! });
    for (const slot of this.slots) clearTimeout(slot.restartTimer);
    for (const worker of workers) {
      if (level === 0) this.#retire(worker, 'shutdown');
      else if (level === 1) worker.send({ type: 'force' });
      else worker.kill('SIGKILL');
    }
    if (workers.length === 0) this.#end();
  }

  #giveUp(error: ClusterError): void {
    if (this.#stopLevel !== undefined) return;
    this.#exitCode = error.exitCode;
    const cause = error instanceof WorkersFailedError ? error.cause : null;
    this.emit('failed', {
      message: error.message,
      exitCode: error.exitCode,
      error: cause as never,
    });
    this.#stopLevel = 0;
    for (const slot of this.slots) clearTimeout(slot.restartTimer);
    for (const worker of this.#workers()) this.#retire(worker, 'shutdown');
    if (this.#workers().length === 0) this.#end();
  }

  /** Asks a worker to leave, and sees to it that it does. */
  #retire(worker: WorkerHandle, cause: RetireCause): void {
    if (worker.retirement !== undefined) return;
    const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = this.options.shutdown;
    const patienceMs =
      worker.state === 'starting'
        ? ABANDON_BOOT_MS
        : lameDuckMs + drainTimeoutMs + killTimeoutMs + EXIT_GRACE_MS;
    this.#slotOf(worker).retire(worker);
    worker.enter('draining');
    worker.retirement = { cause, since: performance.now() };
    worker.send({ type: 'drain', cause });
    worker.after(patienceMs, () => this.#post({ type: 'exit-overdue', worker }));
    this.emit('worker-draining', { worker: worker.identity, cause });
  }

  #end(): void {
    clearInterval(this.#heartbeatTimer);
    this.socket.close();
    this.#resolveEnded(this.#exitCode);
  }

  #workers(): readonly WorkerHandle[] {
    return this.slots.flatMap((slot) => slot.workers);
  }

  #slotOf(worker: WorkerHandle): Slot {
    return this.slots[worker.identity.slot]!;
  }
}
