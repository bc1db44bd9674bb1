import {
  AddressUnavailableError,
  ClusterConfigurationError,
  isAddressErrorCode,
} from '../errors/index.js';
import type { EmitEvent } from '../events/index.js';
import { reportError, type WorkerMessage } from '../ipc/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import type { FailureCause } from '../snapshot/index.js';
import {
  beginCollapse,
  beginDeparture,
  describeEnd,
  drainAfterAll,
  explain,
  reportDeparture,
  reportFailure,
  reportLateError,
} from './departure.js';
import type { Balance } from './balance.js';
import { BootErrors } from './boot-errors.js';
import type { ShowOutput } from './boot-output.js';
import type { ProcessEvent } from './fork-worker.js';
import type { Listening } from './listening/listening.interface.js';
import type { MetricsRelay } from './metrics-relay.js';
import { OomWatch } from './oom-watch.js';
import { classifyFailure, type ProcessExit } from './policies/exit-cause.policy.js';
import type { Recovery } from './recovery.js';
import type { Program, Release } from './release.js';
import type { Scaling } from './scaling.js';
import type { Shutdown } from './shutdown.js';
import type { Slot } from './slot.js';
import { startWorker } from './start-worker.js';
import type { Succession } from './succession.js';
import type { Upkeep } from './upkeep.js';
import { Verification } from './verification.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** What happens to a worker between its fork and its exit. */
export type LifecycleEvent =
  | { type: 'start-due'; slot: Slot }
  | (ProcessEvent & { worker: WorkerHandle })
  | { type: 'ready-overdue'; worker: WorkerHandle }
  | { type: 'recovered'; worker: WorkerHandle };

/** What the first worker that is ready says of itself. */
export interface Served {
  readonly url: string;
  readonly endpoints: readonly string[];
}

/** The rest of the primary, as far as a worker's life touches it. */
export interface Surroundings {
  readonly options: ResolvedClusterOptions;
  readonly listening: Listening;
  readonly program: Program;
  readonly table: WorkerTable;
  readonly relay: MetricsRelay;
  readonly recovery: Recovery;
  readonly succession: Succession;
  readonly scaling: Scaling;
  readonly shutdown: Shutdown;
  readonly upkeep: Upkeep;
  readonly balance: Balance;
  readonly emit: EmitEvent;
  readonly post: (event: LifecycleEvent) => void;
  readonly showOutput: ShowOutput;
  /** The first worker is ready, and its threads can do their work. */
  readonly serving: (served: Served) => void;
}

/**
 * A signal to the whole process group (systemd, a shell) may reach workers
 * before the primary: until that is ruled out one that is to leave serves on,
 * and is not replaced. It would leave what waits for it to nobody.
 */
const GROUP_SIGNAL_MS = 100;

/** A worker's life, from its fork to its exit: one method for each thing that happens in it. */
export class Lifecycle {
  readonly #oomWatch = new OomWatch();
  readonly #bootErrors = new BootErrors();
  readonly verification: Verification;

  constructor(private readonly around: Surroundings) {
    this.verification = new Verification(around);
  }

  /** Gives the slot its worker, of the release that it had. */
  start(slot: Slot): void {
    slot.current = this.fork(slot, slot.release);
  }

  /** Starts a process for the slot; what it is to the slot is the caller's to say. */
  fork(slot: Slot, release: Release): WorkerHandle {
    return startWorker(slot, release, this.around, this.#bootErrors);
  }

  onStartDue(slot: Slot): void {
    if (this.around.shutdown.begun || !this.around.table.wants(slot)) return;
    if (slot.current === undefined && slot.candidate === undefined) this.start(slot);
  }

  onReady(worker: WorkerHandle, message: WorkerMessage & { type: 'ready' }, now: number): void {
    const { options, recovery, emit, post } = this.around;
    this.#bootErrors.cameUp(worker.identity.slot);
    worker.bootOutput?.drop();
    if (!worker.enter('ready')) {
      // It was told to leave while it came up, and has come up all the same.
      if (worker.retirement !== undefined) drainAfterAll(worker, now, options.shutdown);
      return;
    }
    worker.readyAt = now;
    worker.error = null;
    this.around.table.minReady = message.minReady ?? this.around.table.minReady;
    worker.after(recovery.recoveryMs, () => post({ type: 'recovered', worker }));
    emit('worker-ready', { worker: worker.identity, bootMs: now - worker.startedAt });
    this.around.relay.foldIfNeeded();
    this.around.upkeep.welcome(worker);
    this.around.balance.welcome();
    this.around.succession.ready(worker);
    this.around.scaling.settle();
    this.verification.ready(worker, message);
  }

  onRecovered(worker: WorkerHandle): void {
    const slot = this.around.table.slotOf(worker);
    if (slot.current === worker) slot.recover();
  }

  onReadyOverdue(worker: WorkerHandle): void {
    if (worker.state !== 'starting') return;
    const { readyTimeoutMs } = this.around.options;
    worker.condemn(
      'boot',
      `boot timed out: it was not ready within ${readyTimeoutMs} ms (readyTimeoutMs) and was killed`,
    );
  }

  /** What no restart can mend ends the cluster before a worker has ever served. */
  onBootFailed(worker: WorkerHandle, message: WorkerMessage & { type: 'boot-failed' }): void {
    const { recovery, shutdown, listening } = this.around;
    const { phase, error } = message;
    worker.error = error;
    if (recovery.everReady) return;
    if (error.code === ClusterConfigurationError.code) {
      shutdown.giveUp(new ClusterConfigurationError(error.message));
    } else if (phase === 'listen' && isAddressErrorCode(error.code)) {
      shutdown.giveUp(new AddressUnavailableError(listening.url, error));
    }
  }

  /** It wrote to its channel what is no message: nothing it says can be relied on any more. */
  onChannelBroken(worker: WorkerHandle, error: unknown): void {
    worker.condemn(
      'crash',
      `it wrote to its channel what is no message (${reportError(error).message}) and was killed`,
    );
  }

  /** An error that nobody caught: the worker drains by itself, and its slot does not wait for that. */
  onFatal(worker: WorkerHandle, { error, abort }: WorkerMessage & { type: 'fatal' }): void {
    const { emit } = this.around;
    // What comes after the first follows from that.
    if (worker.state === 'draining' && !worker.fatal && !abort) {
      reportLateError(worker, error, emit);
    }
    if (worker.state === 'ready' || worker.error === null) worker.error = error;
    worker.fatal = true;
    if (abort || worker.state !== 'ready') return;
    beginCollapse(worker, this.around.options.shutdown, emit);
    this.around.table.slotOf(worker).retire(worker);
    this.#onFailure(worker, 'crash', `${error.name}: ${error.message}`);
  }

  /** A worker received SIGTERM itself, or its app closes itself. It serves on until it is told to drain. */
  onLeaving(worker: WorkerHandle, { closed = false }: WorkerMessage & { type: 'leaving' }): void {
    if (worker.state === 'starting') return this.#takeLeave(worker, closed);
    worker.after(GROUP_SIGNAL_MS, () => this.#takeLeave(worker, closed), 'leave');
  }

  /** It drains, and its slot gets another. */
  #takeLeave(worker: WorkerHandle, closed: boolean): void {
    const { options, table, succession, shutdown, emit, post } = this.around;
    const booting = worker.state === 'starting';
    if (shutdown.begun || !(booting || worker.state === 'ready')) return;
    const slot = table.slotOf(worker);
    slot.retire(worker);
    beginDeparture(worker, 'signal', options.shutdown, emit);
    // Nobody had asked for it: an app that does so again and again is in a crash loop.
    if (closed) return this.#onFailure(worker, 'exit', 'its app closed itself');
    if (succession.left(worker, 'it was told to leave by a signal of its own')) return;
    if (slot.candidate !== undefined) return;
    slot.scheduleStart(booting ? GROUP_SIGNAL_MS : 0, () => post({ type: 'start-due', slot }));
  }

  /** The slot is not wanted any more. */
  dismiss(slot: Slot): void {
    slot.cancelStart();
    for (const worker of slot.workers) {
      if (worker.state === 'draining') continue;
      slot.retire(worker);
      beginDeparture(worker, 'scale', this.around.options.shutdown, this.around.emit);
      this.around.succession.left(worker, 'its slot was scaled away');
    }
  }

  onExit(worker: WorkerHandle, exit: ProcessExit): void {
    const state = worker.state;
    if (!worker.enter('exited')) return;
    const { table, relay, succession, scaling, shutdown, emit } = this.around;
    const { retirement, condemned } = worker;
    const oomKill = this.#oomWatch.hasKilled();
    const failure =
      condemned?.cause ?? classifyFailure(exit, { state, oomKill, explained: worker.fatal });
    const cause = retirement?.cause ?? failure;
    table.slotOf(worker).remove(worker, { cause, ...exit, at: new Date().toISOString() });
    // After it has left the table: a scrape that this completes must not count it twice.
    relay.retire(worker);
    this.verification.left(worker);
    const error = worker.readyAt === undefined ? this.#bootErrors.failed(worker) : worker.error;
    let well = true;
    if (retirement !== undefined) {
      well = reportDeparture(worker, exit, emit);
      succession.left(worker, 'it left');
    } else {
      const why = describeEnd(worker, failure, exit);
      const isNews = worker.readyAt === undefined && this.#bootErrors.mayShow(worker, why);
      if (isNews) worker.bootOutput?.show(worker.identity, this.around.showOutput);
      const detail = reportFailure(worker, failure, exit, emit, error);
      // One that drained after an error of its own has been counted when that came.
      if (state === 'draining') succession.left(worker, detail);
      else this.#onFailure(worker, failure, explain(worker, detail));
    }
    scaling.settle();
    shutdown.workerEnded(well);
  }

  /** A worker is lost that nobody had asked to go. */
  #onFailure(worker: WorkerHandle, cause: FailureCause, detail: string): void {
    const { table, recovery, succession, shutdown } = this.around;
    if (shutdown.begun) return;
    const slot = table.slotOf(worker);
    // A candidate: the slot's own worker serves on.
    if (succession.left(worker, detail) || !table.wants(slot)) return;
    const error = recovery.note(worker, cause, detail);
    if (error !== undefined) return shutdown.giveUp(error);
    slot.countRestart(cause);
    // A candidate that is on its way takes the place.
    if (slot.candidate === undefined) recovery.restart(slot);
  }
}
