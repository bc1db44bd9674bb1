import type { PrimaryMessage } from '../contract/messages.js';
import type { ResolvedClusterOptions } from '../contract/options/resolve.js';
import type {
  ClusterState,
  ReplacementRequest,
  Slot,
  Timer,
  Worker,
  WorkerId,
  WorkerTimer,
} from './cluster-state.js';
import type { Effect, Emit } from './effect.js';

/** Settings that never change while the cluster runs. */
export interface Settings {
  readonly options: Pick<
    ResolvedClusterOptions,
    'readyTimeoutMs' | 'hangTimeoutMs' | 'memory' | 'recycle' | 'reload' | 'shutdown'
  >;
  readonly url: string;
  /** Whether a debugger may stop a worker as early as its first line. */
  readonly mayBeDebugged: boolean;
  /** The machine's monotonic clock minus the clock of the core, in ms. */
  readonly machineClockMs: number;
}

/** A process still alive this long after SIGKILL is in an uninterruptible system call. */
export const EXIT_TIMEOUT_MS = 10_000;

type Changes<W> = Partial<Omit<W, 'id' | 'slot' | 'generation' | 'state'>>;

/** One transition under way: the current state, and the effects so far. */
export class Step {
  readonly effects: Effect[] = [];
  #state: ClusterState;
  /** The last replacement that ended in this step. `failure`: why the old worker stays; `null` if it does not. */
  ended: (ReplacementRequest & { readonly failure: string | null }) | undefined;

  constructor(
    state: ClusterState,
    readonly now: number,
    readonly settings: Settings,
  ) {
    this.#state = { ...state };
  }

  get state(): ClusterState {
    return this.#state;
  }

  get options(): Settings['options'] {
    return this.settings.options;
  }

  set(changes: Partial<ClusterState>): void {
    Object.assign(this.#state, changes);
  }

  worker(id: WorkerId): Worker | undefined {
    return this.#state.workers.get(id);
  }

  slotOf({ slot }: Pick<Worker, 'slot'>): Slot {
    return this.#state.slots[slot]!;
  }

  setSlot(index: number, changes: Partial<Omit<Slot, 'index'>>): void {
    const slot = { ...this.#state.slots[index]!, ...changes };
    this.set({ slots: this.#state.slots.with(index, slot) });
  }

  /** Adds a worker, or replaces it with the same worker in another state. */
  enter(worker: Worker): void {
    this.set({ workers: new Map(this.#state.workers).set(worker.id, worker) });
  }

  /** Changes a worker's fields, except its state. */
  change<W extends Worker>(worker: W, changes: Changes<W>): W {
    const changed = { ...(this.worker(worker.id) as W), ...changes };
    this.enter(changed);
    return changed;
  }

  remove({ id }: Worker): void {
    const workers = new Map(this.#state.workers);
    workers.delete(id);
    this.set({ workers });
    this.disarmAllOf(id);
  }

  /** Disarms all timers of a worker that leaves a state. */
  disarmAllOf(id: WorkerId): void {
    const timers = [...this.#state.timers.values()];
    for (const timer of timers) if ('worker' in timer && timer.worker === id) this.disarm(timer);
  }

  do(effect: Exclude<Effect, { type: 'arm' | 'disarm' }>): void {
    this.effects.push(effect);
  }

  emit<N extends Emit['name']>(name: N, event: Extract<Emit, { name: N }>['event']): void {
    this.effects.push({ type: 'emit', name, event } as Emit);
  }

  send({ id }: Pick<Worker, 'id'>, message: PrimaryMessage): void {
    this.effects.push({ type: 'send', worker: id, message });
  }

  kill({ id }: Pick<Worker, 'id'>, signal: NodeJS.Signals): void {
    this.effects.push({ type: 'kill', worker: id, signal });
    const overdue: Timer = { type: 'exit-overdue', worker: id };
    if (signal !== 'SIGKILL' || this.#state.timers.has(keyOf(overdue))) return;
    this.arm(overdue, EXIT_TIMEOUT_MS);
  }

  arm(timer: Timer, ms: number): void {
    this.set({ timers: new Map(this.#state.timers).set(keyOf(timer), timer) });
    this.effects.push({ type: 'arm', timer, ms });
  }

  /** Arms a timer of a worker. The timer is disarmed when the worker leaves its state. */
  armFor({ id }: Pick<Worker, 'id'>, type: WorkerTimer, ms: number): void {
    this.arm({ type, worker: id }, ms);
  }

  disarm(timer: Timer): void {
    if (this.removeTimer(timer)) this.effects.push({ type: 'disarm', timer });
  }

  /** Removes a timer. @returns whether it was armed. */
  removeTimer(timer: Timer): boolean {
    const timers = new Map(this.#state.timers);
    if (!timers.delete(keyOf(timer))) return false;
    this.set({ timers });
    return true;
  }

  random(): number {
    const { value, seed } = draw(this.#state.seed);
    this.set({ seed });
    return value;
  }
}

/** The key of a timer. A timer replaces an earlier one with the same key. */
export function keyOf(timer: Timer): string {
  if ('worker' in timer) return `${timer.type} worker ${timer.worker}`;
  return 'slot' in timer ? `${timer.type} slot ${timer.slot}` : timer.type;
}

/** A random number 0..1 and the next seed (mulberry32). With the seed, a run can be repeated. */
function draw(seed: number): { readonly value: number; readonly seed: number } {
  const next = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(next ^ (next >>> 15), 1 | next);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return { value: ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32, seed: next };
}
