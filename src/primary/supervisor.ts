import { constants } from 'node:os';
import type { ClusterEventMap, ClusterEventName, EmitEvent } from '../contract/log/events.js';
import { machineClockMs } from '../contract/process/clock.js';
import { reportError } from '../contract/errors/error-report.js';
import type { ResolvedClusterOptions } from '../contract/options/resolve.js';
import type {
  ClusterSnapshot,
  CollectedMetrics,
  ReloadResult,
  RestartResult,
} from '../contract/snapshot/types.js';
import type { ClusterEvent } from '../decide/input.js';
import type { Requester, Served, WorkerId } from '../decide/cluster-state.js';
import type { Answer, Effect } from '../decide/effect.js';
import { PING_INTERVAL_MS } from '../decide/worker/liveness.js';
import type { Settings } from '../decide/step.js';
import { newCluster, type transition } from '../decide/transition.js';
import { Balance, BALANCE_TICK_MS } from './balance.js';
import type { forkWorker, ProcessEvent } from './fork-worker.js';
import { Inspections } from './inspections.js';
import type { ClusterAcceptors, Listening } from './listening/listening.js';
import { MetricsRelay } from './metrics-relay.js';
import type { PackageThreads } from './package-threads.js';
import type { Program } from './program.js';
import { Timers } from './timers.js';
import { mayBeDebugged } from './worker-arguments.js';
import type { Caller } from './worker-handle.js';
import { WorkerMessages } from './worker-messages.js';
import { WorkerTable } from './worker-table.js';

/** The interval at which the limits of the options `memory` and `recycle` are checked. */
const UPKEEP_INTERVAL_MS = 1_000;

type Input =
  | ClusterEvent
  | { readonly type: 'process'; readonly worker: WorkerId; readonly event: ProcessEvent };

/** The functions for decisions and side effects. The simulation test replaces them. */
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
  readonly #table: WorkerTable;
  readonly #relay: MetricsRelay;
  readonly #balance: Balance;
  readonly #messages: WorkerMessages;
  readonly inspections: Inspections;
  readonly #intervals: NodeJS.Timeout[] = [];
  readonly #timers = new Timers((timer) => this.#post({ type: 'due', timer }));
  readonly #callers = new Map<number, Caller>();
  #calls = 0;
  readonly #waiting: Input[] = [];
  #handling = false;

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
    const release = { ...program.resolve(), generation: 0 };
    const state = newCluster(options.workers, release, performance.now(), Math.random() * 2 ** 32);
    const table = (this.#table = new WorkerTable(state, listening, droppedLogLines));
    const relay = (this.#relay = new MetricsRelay(table));
    const balance = (this.#balance = new Balance(table));
    const inspections = (this.inspections = new Inspections(table));
    const { threads } = outside;
    const to = { listening, table, relay, balance, inspections, threads, emit };
    this.#messages = new WorkerMessages(to);
  }

  /** Forks the workers. Install signal handlers first, or a signal could orphan the workers. */
  start(): void {
    const every = (ms: number, run: () => void): void => {
      this.#intervals.push(setInterval(() => this.#guard('an interval', run), ms));
    };
    every(PING_INTERVAL_MS, () => {
      const { eventLoopUtilization } = this.#table.meter.measure();
      this.#post({ type: 'heartbeat-due', eventLoopUtilization });
    });
    if (this.options.rebalance) every(BALANCE_TICK_MS, () => this.#balance.tick());
    const { memory, recycle } = this.options;
    if (Object.values({ ...memory, ...recycle }).some(Number.isFinite)) {
      every(UPKEEP_INTERVAL_MS, () =>
        this.#post({ type: 'upkeep-due', readings: this.#table.readings() }),
      );
    }
    this.#post({ type: 'begin' });
  }

  readonly reload = (reason: string): Promise<ReloadResult> =>
    this.#ask((requester) => ({ type: 'reload', reason, requester }));

  /** @throws ClusterAddressError, ClusterConfigurationError if a new worker would have no socket. */
  readonly scale = (workers: number, reason: string): Promise<ClusterSnapshot> =>
    this.#ask((requester) => ({ type: 'scale', workers, reason, requester }));

  readonly restart = (slot: number, reason: string): Promise<RestartResult> =>
    this.#ask((requester) => ({ type: 'restart', slot, reason, requester }));

  /** Stops the cluster. The first signal drains, the second closes connections, the third kills. */
  stop(reason: string, signal?: NodeJS.Signals): void {
    const sent = signal && { name: signal, number: constants.signals[signal] };
    this.#post({ type: 'stop', reason, signal: sent });
  }

  get reloading(): boolean {
    return this.#table.state.reload !== undefined;
  }

  readonly snapshot = (): ClusterSnapshot => this.#table.snapshot();
  /** When the supervisor last checked the workers' heartbeats, in monotonic ms. */
  readonly lastBeatAt = (): number => this.#table.state.lastBeatAt;

  /** Metrics of all workers. If a worker does not answer in time, its last metrics are used. */
  readonly collectMetrics = (): Promise<CollectedMetrics> => this.#relay.collect();

  /** Sends an event to the workers that have subscribed to it. */
  readonly tellWorkers: EmitEvent = (name, event) => {
    for (const worker of this.#table.workers) worker.tell(name, event);
  };

  /** Handles an input. Inputs posted by the handler wait until the handler returns. */
  #post(input: Input): void {
    this.#waiting.push(input);
    if (this.#handling) return;
    this.#handling = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const current = next;
      this.#guard(current.type, () => this.#handle(current));
    }
    this.#handling = false;
  }

  /** Calls `run`. Logs its error, so that later inputs and effects are still handled. */
  #guard(what: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      try {
        this.emit('warning', {
          message: `unexpected error while handling ${what}`,
          error: reportError(error),
        });
      } catch {
        // the error cannot be reported, for example because the disk is full
      }
    }
  }

  #handle(input: Input): void {
    if (input.type !== 'process') return this.#decide(input);
    const event = this.#messages.receive(input.worker, input.event);
    if (event !== undefined) this.#decide(event);
  }

  #decide(happened: ClusterEvent): void {
    const event = happened.type === 'scale' ? this.#reserve(happened) : happened;
    const now = performance.now();
    const { state, effects } = this.outside.decide(this.#table.state, event, now, this.#settings);
    this.#table.update(state);
    for (const effect of effects) this.#guard(effect.type, () => this.#perform(effect));
    // Answers to pings and leases are frequent, and do not change which workers serve.
    if (event.type === 'worker' && ['pong', 'leads'].includes(event.event.type)) return;
    this.listening.settle(this.#table.workers, now);
  }

  #perform(effect: Effect): void {
    switch (effect.type) {
      case 'fork': {
        const { worker } = effect;
        const report = (event: ProcessEvent) => this.#post({ type: 'process', worker, event });
        const { program, options } = this;
        return this.#table.add(worker, this.outside.startProcess(effect, program, options, report));
      }
      case 'send':
        return this.#table.find(effect.worker)?.send(effect.message);
      case 'kill':
        return this.#table.find(effect.worker)?.kill(effect.signal);
      case 'abandon': {
        const event = { type: 'exit', exit: { code: null, signal: 'SIGKILL' } } as const;
        return this.#post({ type: 'process', worker: effect.worker, event });
      }
      case 'force':
        return this.#table.find(effect.worker)?.force();
      case 'arm':
        return this.#timers.arm(effect.timer, effect.ms);
      case 'disarm':
        return this.#timers.disarm(effect.timer);
      case 'emit': {
        const event = this.#table.identified(effect);
        if (this.options.memory.profile && effect.name === 'worker-replacing') {
          void this.#profileLarge(event as ClusterEventMap['worker-replacing']);
        }
        return this.emit<ClusterEventName>(effect.name, event as never);
      }
      case 'joined':
        return this.#balance.workerJoined();
      case 'gone': {
        const handle = this.#table.remove(effect.worker);
        if (handle === undefined) return;
        this.inspections.ended(handle);
        return this.#relay.retire(handle);
      }
      case 'answer':
        return this.#answer(effect.requester, effect.answer);
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

  /** Profiles a worker over the soft memory limit before it drains. */
  async #profileLarge({ cause, worker }: ClusterEventMap['worker-replacing']): Promise<void> {
    if (cause !== 'memory') return;
    const message = await this.inspections.profileLarge(worker.slot);
    if (message !== undefined) this.emit('warning', { message, worker });
  }

  /** Before the core decides, makes sure that this many workers can listen. */
  #reserve(event: ClusterEvent & { readonly type: 'scale' }): ClusterEvent {
    if (this.#table.state.shutdown !== undefined) return event;
    try {
      this.listening.reserve(event.workers);
      return event;
    } catch (error) {
      return { ...event, error: error as Error };
    }
  }

  /** Posts a request, and resolves with its answer. */
  #ask<Result>(eventOf: (requester: Requester) => ClusterEvent): Promise<Result> {
    const id = (this.#calls += 1);
    return new Promise<Result>((resolve, reject) => {
      this.#callers.set(id, { resolve: resolve as Caller['resolve'], reject });
      this.#post(eventOf({ by: 'caller', id }));
    });
  }

  #answer(requester: Requester, answer: Answer): void {
    const { id } = requester;
    const caller =
      requester.by === 'worker'
        ? this.#table.find(requester.worker)?.caller(id)
        : this.#callers.get(id);
    if (requester.by === 'caller') this.#callers.delete(id);
    if (answer.type === 'scale-refused') caller?.reject(answer.error);
    else caller?.resolve(answer.type === 'scaled' ? this.snapshot() : answer.result);
  }
}
