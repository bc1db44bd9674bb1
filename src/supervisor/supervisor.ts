import { constants } from 'node:os';
import type { ClusterEventName, EmitEvent } from '../contract/log/events.js';
import { machineClockMs } from '../contract/ipc/machine-clock.js';
import { reportError } from '../contract/ipc/index.js';
import type { ResolvedClusterOptions } from '../contract/options/index.js';
import type { ClusterSnapshot, CollectedMetrics } from '../contract/snapshot/index.js';
import { Balance, BALANCE_TICK_MS } from './serve/balance.js';
import type { ClusterEvent } from './decide/cluster-event.js';
import type { Served, WorkerId } from './decide/cluster-state.js';
import type { Effect } from './decide/effect.js';
import { PING_INTERVAL_MS } from './decide/policies/heartbeat.policy.js';
import type { Settings } from './decide/step.js';
import { newCluster, type transition } from './decide/transition.js';
import type { forkWorker, ProcessEvent } from './processes/fork-worker.js';
import { Inspections } from './serve/inspections.js';
import type { Listening } from './listening/listening.interface.js';
import { type Later, MetricsRelay } from './serve/metrics-relay.js';
import { PrimaryMeter } from './serve/primary-meter.js';
import { Requests } from './serve/requests.js';
import type { Program } from './processes/release.js';
import { Switchboard } from './switchboard.js';
import { Timers } from './timers.js';
import type { ClusterAcceptors } from './listening/cluster-acceptors.js';
import type { PackageThreads } from './serve/package-threads.js';
import { mayBeDebugged } from './processes/worker-arguments.js';
import { UPKEEP_INTERVAL_MS, WorkerReadings } from './serve/worker-readings.js';
import { WorkerTable } from './processes/worker-table.js';

type Happening =
  | ClusterEvent
  | { readonly type: 'process'; readonly worker: WorkerId; readonly told: ProcessEvent }
  | { readonly type: 'task'; readonly run: () => void };

/** The functions with which a supervisor decides and acts. The simulation test replaces them. */
export interface Dependencies {
  readonly decide: typeof transition;
  readonly startProcess: typeof forkWorker;
  readonly acceptors: Pick<ClusterAcceptors, 'close'>;
  readonly threads: Pick<PackageThreads, 'path'>;
}

/**
 * Keeps the workers running: turns each input into an event of the core (`decide/`), and carries
 * out the effects that the core returns. Only the core makes decisions about the cluster.
 */
export class Supervisor {
  #resolveServing!: (served: Served) => void;
  /** Resolves once the first worker is ready. */
  readonly serving = new Promise<Served>((resolve) => (this.#resolveServing = resolve));
  #resolveEnded!: (exitCode: number) => void;
  /** Resolves with the exit code once no worker is left. */
  readonly ended = new Promise<number>((resolve) => (this.#resolveEnded = resolve));

  readonly #settings: Settings;
  readonly #meter: PrimaryMeter;
  readonly #readings: WorkerReadings;
  readonly #table: WorkerTable;
  readonly #relay: MetricsRelay;
  readonly #balance: Balance;
  readonly #switchboard: Switchboard;
  /** Takes stacks and profiles of a worker, even if the worker is blocked. */
  readonly inspections: Inspections;
  readonly #intervals: NodeJS.Timeout[] = [];
  readonly #timers = new Timers((timer) => this.#post({ type: 'due', timer }));
  readonly #requests = new Requests(
    (worker, message) => this.#table.find(worker)?.send(message),
    (event) => this.#post(event),
    () => this.#table.snapshot(),
  );
  readonly reload = this.#requests.reload;
  readonly scale = this.#requests.scale;
  readonly restart = this.#requests.restart;
  readonly #post = (happening: Happening): void => this.#queue.post(happening);
  readonly #onError = ({ type }: { readonly type: string }, error: unknown): void =>
    this.#warn(`unexpected error on ${type}`, error);
  readonly #queue = new EventQueue<Happening>(
    (happening) => this.#handle(happening),
    this.#onError,
  );
  /** The effects to carry out. If one effect throws, the other effects are carried out anyway. */
  readonly #effects = new EventQueue<Effect>((effect) => this.#perform(effect), this.#onError);

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly listening: Listening,
    private readonly program: Program,
    private readonly emit: EmitEvent,
    droppedLogLines: () => number,
    private readonly outside: Dependencies,
  ) {
    const about = { mayBeDebugged: mayBeDebugged(), machineClockMs: machineClockMs() };
    this.#settings = { options, url: listening.url, ...about };
    this.#meter = new PrimaryMeter(droppedLogLines);
    const release = { ...program.resolve(), generation: 0 };
    const state = newCluster(options.workers, release, performance.now(), Math.random() * 2 ** 32);
    const table = (this.#table = new WorkerTable(state, listening, this.#meter));
    const relay = (this.#relay = new MetricsRelay(table, this.#later));
    const balance = (this.#balance = new Balance(table));
    const readings = (this.#readings = new WorkerReadings(options));
    const inspections = (this.inspections = new Inspections(table));
    const asked = { relay, balance, readings, inspections };
    this.#switchboard = new Switchboard({
      listening,
      table,
      ...asked,
      threads: outside.threads,
      emit,
    });
  }

  /** Forks the workers. Install signal handlers first, or a signal could orphan the workers. */
  start(): void {
    const every = (ms: number, run: () => void): void => {
      this.#intervals.push(setInterval(() => this.#post({ type: 'task', run }), ms));
    };
    every(PING_INTERVAL_MS, () => {
      const { eventLoopUtilization } = this.#meter.measure();
      this.#decide({ type: 'heartbeat-due', eventLoopUtilization });
    });
    if (this.options.rebalance) every(BALANCE_TICK_MS, () => this.#balance.tick());
    if (this.#readings.needed) {
      const readAll = () => this.#readings.ofAll(this.#table);
      every(UPKEEP_INTERVAL_MS, () => this.#decide({ type: 'upkeep-due', readings: readAll() }));
    }
    this.#post({ type: 'begin' });
  }

  /** Stops the cluster. The first signal drains, the second closes connections, the third kills. */
  stop(reason: string, signal?: NodeJS.Signals): void {
    const sent = signal && { name: signal, number: constants.signals[signal] };
    this.#post({ type: 'stop', reason, signal: sent });
  }

  get reloading(): boolean {
    return this.#table.state.reload !== undefined;
  }

  readonly snapshot = (): ClusterSnapshot => this.#table.snapshot();
  /** When the supervisor last looked after the heartbeats of the workers, in monotonic ms. */
  readonly lastBeatAt = (): number => this.#table.state.lastBeatAt;

  /** Metrics of all workers. If a worker does not answer in time, its last metrics are used. */
  readonly collectMetrics = (): Promise<CollectedMetrics> => this.#relay.collect();

  /** Sends an event to the workers that have subscribed to it. */
  readonly tellWorkers: EmitEvent = (name, event) => {
    for (const worker of this.#table.workers) worker.tell(name, event);
  };

  /** Runs `run` in the event queue after `ms`. The queue catches errors of `run`; a timer would not. */
  readonly #later: Later = (ms, run) => {
    const timer = setTimeout(() => this.#post({ type: 'task', run }), ms);
    return () => clearTimeout(timer);
  };

  #handle(happening: Happening): void {
    if (happening.type === 'task') return happening.run();
    if (happening.type !== 'process') return this.#decide(happening);
    const event = this.#switchboard.receive(happening.worker, happening.told);
    if (event !== undefined) this.#decide(event);
  }

  /** Passes an event to the core, and queues the effects that it returns. */
  #decide(happened: ClusterEvent): void {
    const event = happened.type === 'scale' ? this.#reserve(happened) : happened;
    const now = performance.now();
    const { state, effects } = this.outside.decide(this.#table.state, event, now, this.#settings);
    this.#table.update(state);
    for (const effect of effects) this.#effects.post(effect);
    // Answers to pings and leases are frequent, and never change which workers serve.
    if (event.type === 'worker' && ['pong', 'leads'].includes(event.event.type)) return;
    this.listening.settle(this.#table.workers, now);
  }

  #perform(effect: Effect): void {
    switch (effect.type) {
      case 'fork': {
        const { worker } = effect;
        const tell = (told: ProcessEvent) => this.#post({ type: 'process', worker, told });
        const { program, options } = this;
        return this.#table.add(worker, this.outside.startProcess(effect, program, options, tell));
      }
      case 'send':
        return this.#table.find(effect.worker)?.send(effect.message);
      case 'kill':
        return this.#table.find(effect.worker)?.kill(effect.signal);
      case 'abandon': {
        const told = { type: 'exit', exit: { code: null, signal: 'SIGKILL' } } as const;
        return this.#post({ type: 'process', worker: effect.worker, told });
      }
      case 'force':
        return this.#table.find(effect.worker)?.force();
      case 'arm':
        return this.#timers.arm(effect.timer, effect.ms);
      case 'disarm':
        return this.#timers.disarm(effect.timer);
      case 'emit': {
        const event = this.#table.identified(effect) as never;
        return this.emit<ClusterEventName>(effect.name, event);
      }
      case 'joined':
        return this.#balance.workerJoined();
      case 'gone': {
        const handle = this.#table.remove(effect.worker);
        this.inspections.ended(effect.worker);
        return handle && this.#relay.retire(handle);
      }
      case 'answer':
        return this.#requests.answer(effect);
      case 'find-program':
        return this.#post({ type: 'program-found', program: this.program.find(effect.earlier) });
      case 'close-sockets':
        return this.listening.close();
      case 'close-acceptors': {
        const closed = () => this.#post({ type: 'acceptors-closed' });
        return void this.outside.acceptors.close().then(closed, closed);
      }
      case 'serving':
        return this.#resolveServing(effect.served);
      case 'end':
        for (const interval of this.#intervals) clearInterval(interval);
        this.#timers.stop();
        return this.#resolveEnded(effect.exitCode);
    }
  }

  /** Makes sure that the new number of workers can listen, before the core decides. */
  #reserve(event: ClusterEvent & { readonly type: 'scale' }): ClusterEvent {
    if (this.#table.state.shutdown !== undefined) return event;
    try {
      this.listening.reserve(event.workers);
      return event;
    } catch (error) {
      return { ...event, error: error as Error };
    }
  }

  #warn(message: string, error?: unknown): void {
    this.emit('warning', { message, ...(error !== undefined && { error: reportError(error) }) });
  }
}

/**
 * Handles events one after the other, in the order in which they were posted. If a handler posts an
 * event, the event waits until that handler is done.
 */
export class EventQueue<E> {
  readonly #waiting: E[] = [];
  #handling = false;

  /** @param failed gets the error that a handler threw. The next event is handled anyway. */
  constructor(
    private readonly handle: (event: E) => void,
    private readonly failed: (event: E, error: unknown) => void,
  ) {}

  #handleOne(event: E): void {
    try {
      this.handle(event);
    } catch (error) {
      try {
        this.failed(event, error);
      } catch {
        // the error cannot be reported; the next event is handled anyway
      }
    }
  }

  post(event: E): void {
    this.#waiting.push(event);
    if (this.#handling) return;
    this.#handling = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        this.#handleOne(next);
      }
    } finally {
      this.#handling = false;
    }
  }
}
