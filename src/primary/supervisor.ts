import {
  AddressUnavailableError,
  ClusterConfigurationError,
  type ClusterError,
  isAddressErrorCode,
  WorkersFailedError,
} from '../errors/index.js';
import type { EmitEvent } from '../events/index.js';
import { type ErrorReport, reportError, type WorkerMessage } from '../ipc/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import type { ClusterSnapshot, FailureCause } from '../snapshot/index.js';
import { beginDeparture, reportDeparture, reportFailure } from './departure.js';
import { EventQueue } from './event-queue.js';
import { forkWorker, type ProcessEvent } from './fork-worker.js';
import { Heartbeat } from './heartbeat.js';
import type { ListeningSocket } from './listening-socket.js';
import { MetricsRelay } from './metrics-relay.js';
import { classifyFailure, type ProcessExit } from './policies/exit-cause.policy.js';
import { reasonToGiveUp } from './policies/give-up.policy.js';
import { restartDelayMs } from './policies/restart.policy.js';
import type { Slot } from './slot.js';
import { Switchboard } from './switchboard.js';
import type { WorkerHandle } from './worker-handle.js';
import { WorkerTable } from './worker-table.js';

/** Everything that can happen to a running cluster. */
type SupervisorEvent =
  | { type: 'start-due'; slot: Slot }
  | (ProcessEvent & { worker: WorkerHandle })
  | { type: 'ready-overdue'; worker: WorkerHandle }
  | { type: 'stable'; slot: Slot }
  | { type: 'heartbeat-due' }
  | { type: 'stop'; reason: string; signalNumber: number };

/**
 * A signal to the whole process group (systemd, a shell) may reach workers
 * before the primary: one that leaves is not replaced until that is ruled out.
 */
const GROUP_SIGNAL_MS = 100;

/** What each further request to stop does. */
const STOP_LEVELS = ['drain', 'destroy', 'kill'] as const;

/**
 * Keeps the workers up. One event queue, one handler an event; what to do is
 * decided by the pure functions of `policies/`.
 */
export class Supervisor {
  #resolveServing!: () => void;
  #resolveEnded!: (exitCode: number) => void;
  /** Resolves once the first worker is ready. */
  readonly serving = new Promise<void>((resolve) => (this.#resolveServing = resolve));
  /** Resolves with the exit code once no worker is left. */
  readonly ended = new Promise<number>((resolve) => (this.#resolveEnded = resolve));

  readonly #table: WorkerTable;
  readonly #heartbeat: Heartbeat;
  readonly #relay: MetricsRelay;
  readonly #switchboard: Switchboard;
  readonly #heartbeatTimer: NodeJS.Timeout;
  readonly #queue = new EventQueue<SupervisorEvent>(
    (event) => this.#handle(event),
    ({ type }, error) =>
      this.emit('warning', { message: `unexpected error on ${type}`, error: reportError(error) }),
  );
  #everReady = false;
  #failures = 0;
  /** `undefined` while running, else an index of `STOP_LEVELS`. */
  #stopLevel: number | undefined;
  #exitCode = 0;

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly socket: ListeningSocket,
    private readonly emit: EmitEvent,
  ) {
    this.#table = new WorkerTable(options.workers, options.balancing);
    this.#heartbeat = new Heartbeat(options.heartbeat);
    this.#relay = new MetricsRelay(this.#table);
    this.#switchboard = new Switchboard(socket, this.#table, this.#heartbeat, this.#relay, emit);
    this.#heartbeatTimer = setInterval(
      () => this.#queue.post({ type: 'heartbeat-due' }),
      options.heartbeat.intervalMs,
    );
    for (const slot of this.#table.slots) this.#fork(slot);
  }

  /** Asks the cluster to stop; each further call asks harder: drain, destroy, kill. */
  stop(reason: string, signalNumber = 0): void {
    this.#queue.post({ type: 'stop', reason, signalNumber });
  }

  snapshot(): ClusterSnapshot {
    return this.#table.snapshot();
  }

  #handle(event: SupervisorEvent): void {
    switch (event.type) {
      case 'start-due':
        if (this.#stopLevel === undefined && !event.slot.current) this.#fork(event.slot);
        return;
      case 'message':
        return this.#onMessage(event.worker, event.message);
      case 'channel-error':
        // Expected while a worker ends; its exit tells the rest.
        event.worker.error ??= reportError(event.error);
        return;
      case 'exit':
        return this.#onExit(event.worker, event.exit);
      case 'ready-overdue':
        return this.#onReadyOverdue(event.worker);
      case 'stable':
        event.slot.recover();
        return;
      case 'heartbeat-due':
        return this.#onHeartbeat();
      case 'stop':
        return this.#onStop(event.reason, event.signalNumber);
    }
  }

  #fork(slot: Slot): void {
    const { generation } = this.#table;
    const worker = forkWorker({ slot: slot.index, generation, primaryPid: process.pid }, (told) =>
      this.#queue.post({ ...told, worker }),
    );
    slot.current = worker;
    worker.after(this.options.readyTimeoutMs, () =>
      this.#queue.post({ type: 'ready-overdue', worker }),
    );
  }

  #onMessage(worker: WorkerHandle, raw: unknown): void {
    const message = this.#switchboard.receive(worker, raw);
    switch (message?.type) {
      case 'ready':
        return this.#onReady(worker, message, performance.now());
      case 'boot-failed':
        return this.#onBootFailed(worker, message);
      case 'fatal':
        worker.error = message.error;
        return;
      case 'leaving':
        return this.#onLeaving(worker);
      case undefined:
    }
  }

  #onReady(worker: WorkerHandle, message: WorkerMessage & { type: 'ready' }, now: number): void {
    if (!worker.enter('ready')) return;
    const slot = this.#table.slotOf(worker);
    worker.readyAt = now;
    worker.error = null;
    worker.after(this.options.restart.stableAfterMs, () =>
      this.#queue.post({ type: 'stable', slot }),
    );
    this.emit('worker-ready', { worker: worker.identity, bootMs: now - worker.startedAt });
    this.#relay.foldIfNeeded();
    if (this.#everReady) return;
    this.#everReady = true;
    const { url, endpoints } = message;
    const { workers, balancing } = this.options;
    this.emit('listening', { url, workers, balancing, endpoints });
    this.#resolveServing();
  }

  #onReadyOverdue(worker: WorkerHandle): void {
    if (worker.state !== 'starting') return;
    const { readyTimeoutMs } = this.options;
    worker.killReason = `boot timed out: it was not ready within ${readyTimeoutMs} ms (readyTimeoutMs) and was killed`;
    worker.kill('SIGKILL');
  }

  /** What no restart can mend ends the cluster before a worker has ever served. */
  #onBootFailed(worker: WorkerHandle, message: WorkerMessage & { type: 'boot-failed' }): void {
    const { phase, error } = message;
    worker.error = error;
    if (this.#everReady) return;
    if (error.code === ClusterConfigurationError.code) {
      this.#giveUp(new ClusterConfigurationError(error.message));
    } else if (phase === 'listen' && isAddressErrorCode(error.code)) {
      this.#giveUp(new AddressUnavailableError(this.socket.url, error));
    }
  }

  /** A worker received SIGTERM itself: it drains, and its slot gets another. */
  #onLeaving(worker: WorkerHandle): void {
    if (worker.retirement !== undefined) return;
    const slot = this.#table.slotOf(worker);
    slot.retire(worker);
    beginDeparture(worker, 'signal', this.options.shutdown, this.emit);
    slot.scheduleStart(GROUP_SIGNAL_MS, () => this.#queue.post({ type: 'start-due', slot }));
  }

  #onExit(worker: WorkerHandle, exit: ProcessExit): void {
    const stateBefore = worker.state;
    if (!worker.enter('exited')) return;
    const slot = this.#table.slotOf(worker);
    const { retirement } = worker;
    const cause = retirement?.cause ?? classifyFailure(stateBefore, exit, worker.hung);
    slot.remove(worker, { cause, ...exit, at: new Date().toISOString() });
    // After it has left the table: a scrape that this completes must not count it twice.
    this.#relay.retire(worker);
    if (retirement === undefined) this.#onFailure(slot, worker, cause as FailureCause, exit);
    else if (!reportDeparture(worker, exit, this.emit) && this.#stopLevel !== undefined) {
      // Asked to stop, but not well: whoever asked should know.
      this.#exitCode ||= 1;
    }
    if (this.#stopLevel !== undefined) this.#endIfEmpty();
  }

  #onFailure(slot: Slot, worker: WorkerHandle, cause: FailureCause, exit: ProcessExit): void {
    const detail = reportFailure(worker, cause, exit, this.emit);
    if (this.#stopLevel !== undefined) return;
    this.#failures += 1;
    const now = performance.now();
    const livedMs = worker.readyAt === undefined ? 0 : now - worker.readyAt;
    slot.recordFailure({ cause, livedMs }, now, this.options.restart);
    const reason = reasonToGiveUp({
      everReady: this.#everReady,
      failures: this.#failures,
      slots: this.#table.slots,
    });
    if (reason !== undefined) {
      const unknown = { name: 'Error', message: `${detail}; see its output above` };
      return this.#giveUp(new WorkersFailedError(reason, { cause: worker.error ?? unknown }));
    }
    const delayMs = restartDelayMs(slot.failures, this.options.restart, Math.random());
    const { inARow: failures, degraded } = slot.failures;
    this.emit('worker-restarting', { slot: slot.index, delayMs, failures, degraded });
    slot.countRestart(cause);
    slot.scheduleStart(delayMs, () => this.#queue.post({ type: 'start-due', slot }));
  }

  #onHeartbeat(): void {
    for (const worker of this.#heartbeat.tick(this.#table.workers, performance.now())) {
      worker.hung = true;
      worker.killReason = 'it stopped answering and was killed';
      // Nothing gentler works: its event loop reads no message and runs no handler.
      worker.kill('SIGKILL');
    }
  }

  #onStop(reason: string, signalNumber: number): void {
    const again = this.#stopLevel !== undefined;
    const level = again ? Math.min(this.#stopLevel! + 1, STOP_LEVELS.length - 1) : 0;
    if (again && signalNumber > 0) this.#exitCode = 128 + signalNumber;
    const { workers } = this.#table;
    this.emit('stopping', { reason, workers: workers.length, force: STOP_LEVELS[level]! });
    if (level === 0) return this.#beginStop();
    this.#stopLevel = level;
    for (const worker of workers) {
      if (level === 1 && worker.connected) worker.send({ type: 'force' });
      else worker.kill('SIGKILL');
    }
  }

  #giveUp(error: ClusterError): void {
    if (this.#stopLevel !== undefined) return;
    const { message, exitCode } = error;
    const cause = error instanceof WorkersFailedError ? (error.cause as ErrorReport) : null;
    this.emit('failed', { message, exitCode, error: cause });
    this.#exitCode = exitCode;
    this.#beginStop();
  }

  #beginStop(): void {
    this.#stopLevel = 0;
    // Workers listen on as long as their lame duck lasts; then whoever comes must be refused, not
    // left waiting on a socket that only the primary still holds.
    setTimeout(() => this.socket.close(), this.options.shutdown.lameDuckMs).unref();
    for (const slot of this.#table.slots) slot.cancelStart();
    for (const worker of this.#table.workers) {
      if (worker.retirement !== undefined) continue;
      this.#table.slotOf(worker).retire(worker);
      beginDeparture(worker, 'shutdown', this.options.shutdown, this.emit);
    }
    this.#endIfEmpty();
  }

  #endIfEmpty(): void {
    if (this.#table.workers.length > 0) return;
    clearInterval(this.#heartbeatTimer);
    this.socket.close();
    this.#resolveEnded(this.#exitCode);
  }
}
