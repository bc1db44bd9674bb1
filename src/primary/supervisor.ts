import type { EmitEvent } from '../events/index.js';
import { reportError, type WorkerMessage } from '../ipc/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import type { ClusterSnapshot, CollectedMetrics, ReloadResult } from '../snapshot/index.js';
import { Balance, BALANCE_TICK_MS } from './balance.js';
import type { ShowOutput } from './boot-output.js';
import { EventQueue } from './event-queue.js';
import { Heartbeat } from './heartbeat.js';
import { Lifecycle, type Served } from './lifecycle.js';
import type { Listening } from './listening/listening.interface.js';
import { laterBy } from './later.js';
import { MetricsRelay } from './metrics-relay.js';
import { PrimaryMeter } from './primary-meter.js';
import { Recovery } from './recovery.js';
import type { Program } from './release.js';
import { Reload } from './reload.js';
import { Scaling, type ScaleRequest, scaleRequestOf } from './scaling.js';
import { Shutdown, SHUTTING_DOWN } from './shutdown.js';
import type { Slot } from './slot.js';
import { Succession } from './succession.js';
import type { SupervisorEvent } from './supervisor-event.js';
import { type LifecycleMessage, Switchboard } from './switchboard.js';
import { Ticks } from './ticks.js';
import { Upkeep, UPKEEP_INTERVAL_MS } from './upkeep.js';
import type { WorkerHandle } from './worker-handle.js';
import { WorkerTable } from './worker-table.js';

/**
 * Keeps the workers up. One event queue, one handler an event: here it is
 * decided whose event it is. A worker's life is in `lifecycle.ts`, what takes
 * several events (a replacement, a reload, scaling, the shutdown) in a file of
 * its own, and what to do in the pure functions of `policies/`.
 */
export class Supervisor {
  #resolveServing!: (served: Served) => void;
  /** Resolves once the first worker is ready. */
  readonly serving = new Promise<Served>((resolve) => (this.#resolveServing = resolve));
  /** Resolves with the exit code once no worker is left. */
  readonly ended: Promise<number>;
  /** What every worker measures; one that does not answer in time is represented by what it last sent. */
  readonly collectMetrics: () => Promise<CollectedMetrics>;

  readonly #meter: PrimaryMeter;
  readonly #table: WorkerTable;
  readonly #heartbeat: Heartbeat;
  readonly #balance: Balance;
  readonly #switchboard: Switchboard;
  readonly #lifecycle: Lifecycle;
  readonly #succession: Succession;
  readonly #reload: Reload;
  readonly #scaling: Scaling;
  readonly #upkeep: Upkeep;
  readonly #shutdown: Shutdown;
  readonly #ticks = new Ticks();
  readonly #queue = new EventQueue<SupervisorEvent>(
    (event) => this.#handle(event),
    ({ type }, error) =>
      this.emit('warning', { message: `unexpected error on ${type}`, error: reportError(error) }),
  );

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly listening: Listening,
    program: Program,
    private readonly emit: EmitEvent,
    output: { readonly dropped: () => number; readonly show: ShowOutput },
  ) {
    this.#meter = new PrimaryMeter(output.dropped);
    const post = (event: SupervisorEvent): void => this.#queue.post(event);
    const table = new WorkerTable(options.workers, listening, program.resolve(0), this.#meter);
    const later = laterBy((action) => post({ type: 'due', action }));
    const relay = new MetricsRelay(table, emit, later);
    this.collectMetrics = () => relay.collect();
    const recovery = new Recovery(options, table, emit, (slot) =>
      post({ type: 'start-due', slot }),
    );
    this.#table = table;
    const heartbeat = (this.#heartbeat = new Heartbeat(options.heartbeat, emit, this.#meter));
    const balance = (this.#balance = new Balance(table));
    this.#switchboard = new Switchboard(listening, table, heartbeat, relay, balance, emit);
    this.#succession = new Succession(options, emit, {
      fork: (slot, release) => this.#lifecycle.fork(slot, release),
      restart: (slot) => recovery.restart(slot),
      wants: (slot) => table.wants(slot),
      post,
    });
    this.#reload = new Reload(table, this.#succession, program, emit);
    this.#scaling = new Scaling(table, listening, emit, {
      start: (slot) => this.#lifecycle.start(slot),
      dismiss: (slot) => this.#lifecycle.dismiss(slot),
    });
    this.#upkeep = new Upkeep(options, table, this.#succession, emit);
    this.#shutdown = new Shutdown(options, table, listening, emit, later, () => {
      this.#succession.cancel(SHUTTING_DOWN);
      this.#scaling.release();
    });
    this.#lifecycle = new Lifecycle({
      options,
      listening,
      program,
      table,
      relay,
      recovery,
      emit,
      post,
      succession: this.#succession,
      scaling: this.#scaling,
      shutdown: this.#shutdown,
      upkeep: this.#upkeep,
      balance: this.#balance,
      showOutput: output.show,
      serving: (served) => this.#resolveServing(served),
    });
    this.ended = this.#shutdown.ended.finally(() => this.#ticks.stop());
  }

  /** Forks the workers. Signals should be handled by now: one that ends the primary would orphan them. */
  start(): void {
    const every = (ms: number, type: 'heartbeat-due' | 'balance-due' | 'upkeep-due') =>
      this.#ticks.every(ms, () => this.#queue.post({ type }));
    every(this.options.heartbeat.intervalMs, 'heartbeat-due');
    if (this.options.rebalance) every(BALANCE_TICK_MS, 'balance-due');
    if (this.#upkeep.needed) every(UPKEEP_INTERVAL_MS, 'upkeep-due');
    for (const slot of this.#table.slots) this.#lifecycle.start(slot);
  }

  /** Asks the cluster to stop; each further signal asks harder: drain, destroy, kill. */
  stop(reason: string, signalNumber = 0): void {
    this.#queue.post({ type: 'stop', reason, signalNumber });
  }

  /** Replaces every worker by one of the program as it is on disk now. */
  reload(reason: string): Promise<ReloadResult> {
    return new Promise((done) => this.#queue.post({ type: 'reload', reason, done }));
  }

  /**
   * Resolves once there are as many workers, or those that are missing have failed.
   *
   * @throws AddressUnavailableError where a new one would have nothing to listen on.
   */
  scale(workers: number, reason: string): Promise<ClusterSnapshot> {
    return new Promise((done, refused) =>
      this.#queue.post({ type: 'scale', workers, reason, leaving: false, done, refused }),
    );
  }

  snapshot(): ClusterSnapshot {
    return this.#table.snapshot();
  }

  #handle(event: SupervisorEvent): void {
    if (event.type === 'message') {
      const message = this.#switchboard.receive(event.worker, event.message, event.handle);
      if (message === undefined) return; // it changed no worker's life
      this.#onLifecycleMessage(event.worker, message);
    } else {
      this.#onEvent(event);
    }
    this.listening.settle(this.#table.workers, performance.now());
  }

  #onEvent(event: Exclude<SupervisorEvent, { type: 'message' }>): void {
    switch (event.type) {
      case 'start-due':
        return this.#lifecycle.onStartDue(event.slot);
      case 'channel-error':
        // Expected while a worker ends; its exit tells the rest.
        event.worker.error ??= reportError(event.error);
        return;
      case 'channel-broken':
        return this.#lifecycle.onChannelBroken(event.worker, event.error);
      case 'exit':
        return this.#lifecycle.onExit(event.worker, event.exit);
      case 'ready-overdue':
        return this.#lifecycle.onReadyOverdue(event.worker);
      case 'recovered':
        return this.#lifecycle.onRecovered(event.worker);
      case 'canary-over':
        return this.#succession.canaryOver(event.worker);
      case 'check-overdue':
        return this.#succession.checkOverdue(event.worker);
      case 'due':
        return event.action();
      case 'heartbeat-due':
        this.#meter.measure(); // first: the heartbeat asks it what a late round came from
        return this.#heartbeat.beat(this.#table.workers, performance.now());
      case 'balance-due':
        return this.#balance.tick();
      case 'block-overdue':
        return this.#heartbeat.judge(event.worker, performance.now());
      case 'upkeep-due':
        if (!this.#shutdown.begun) this.#upkeep.check(performance.now());
        return;
      case 'reload':
        return this.#onReload(event.reason, event.done);
      case 'scale':
        return this.#onScale(event);
      case 'stop':
        return this.#shutdown.request(event.reason, event.signalNumber);
    }
  }

  #onLifecycleMessage(worker: WorkerHandle, message: LifecycleMessage): void {
    switch (message.type) {
      case 'ready':
        return this.#lifecycle.onReady(worker, message, performance.now());
      case 'boot-failed':
        return this.#lifecycle.onBootFailed(worker, message);
      case 'fatal':
        return this.#lifecycle.onFatal(worker, message);
      case 'leaving':
        return this.#lifecycle.onLeaving(worker, message);
      case 'verified':
        return this.#lifecycle.verification.answered(worker, message.error);
      case 'blocked':
        return this.#onBlocked(worker, message);
      case 'checked':
        return this.#succession.checked(worker, message.id, message);
      case 'reload-request':
        this.#onReload(
          `reload() in worker=${worker.identity.slot}`,
          (result) => worker.send({ type: 'reloaded', id: message.id, result }),
          this.#table.slotOf(worker),
        );
        // One that is on its way out already would wait for a reload that waits for its exit.
        this.#succession.doNotWaitFor(worker);
        return;
      case 'scale-request':
        return this.#onScale(scaleRequestOf(worker, message));
      case 'replace-request':
        return this.#upkeep.retire(worker, message.reason, performance.now());
    }
  }

  /** Its watchdog tells before the heartbeat can: judged when the time is up, not at the next tick. */
  #onBlocked(worker: WorkerHandle, report: WorkerMessage & { type: 'blocked' }): void {
    const leftMs = this.#heartbeat.blocked(worker, report, performance.now());
    worker.after(leftMs, () => this.#queue.post({ type: 'block-overdue', worker }), 'block');
  }

  #onReload(reason: string, done: (result: ReloadResult) => void, asker?: Slot): void {
    if (this.#shutdown.begun) {
      const { generation } = this.#table;
      return done({ outcome: 'aborted', generation, reason: SHUTTING_DOWN });
    }
    this.#reload.run(reason, { leaving: asker !== undefined, done }, asker);
  }

  #onScale(request: ScaleRequest): void {
    if (this.#shutdown.begun) request.done(this.#table.snapshot());
    else this.#scaling.scale(request);
  }
}
