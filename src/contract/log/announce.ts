import type { ClusterEventMap, EmitEvent, EventHandlers } from './events.js';
import { describeEvent } from './log.js';

/** How long to wait for the other workers before the address is logged without them, in ms. */
const LATE_MS = 5_000;

/** Converts the two end-of-worker events to `worker-exit`, which follows them. */
const EXITS: EventHandlers<ClusterEventMap['worker-exit']> = {
  'worker-died': ({ worker, cause, detail }) => ({ worker, cause, failed: true, detail }),
  'worker-stopped': ({ worker, cause, problem: detail }) => ({
    worker,
    cause,
    failed: false,
    detail,
  }),
};

/**
 * Logs each event of a cluster, and then passes it to the listeners. Adds the events `started` and
 * `worker-exit`. A quiet log omits redundant lines. During startup, the `started` line replaces the
 * lines of ready workers. A failed attempt to start a worker gets one line. A reload gets one line
 * per slot, unless the old worker ended with a problem.
 */
export class Announcer {
  /** True until each slot has had a ready worker or is in a crash loop. */
  #isStarting = true;
  #gaveUp = false;
  #listening: ClusterEventMap['listening'] | undefined;
  /** Fires after {@link LATE_MS}. */
  #late: NodeJS.Timeout | undefined;
  /** How long the first ready worker of each slot took to start, in ms. */
  readonly #bootMs = new Map<number, number>();
  /** Slots in a crash loop. Startup does not wait for them. */
  readonly #degraded = new Set<number>();
  /** Slots that failed during startup. Their recovery is logged too. */
  readonly #failed = new Set<number>();
  /** Slots whose last worker did not become ready. */
  readonly #down = new Set<number>();

  constructor(
    private workers: number,
    private readonly quiet: boolean,
    private readonly log: EmitEvent,
    private readonly tell: EmitEvent,
    private readonly now = () => performance.now(),
    private readonly startedAt = now(),
  ) {}

  readonly emit: EmitEvent = (name, event) => {
    if (!this.quiet || !this.#repeats[name]?.(event)) this.log(name, event);
    this.tell(name, event);
    const exit = EXITS[name]?.(event);
    if (exit !== undefined) this.tell('worker-exit', exit);
    this.#follow[name]?.(event);
    const started = this.#started();
    if (started !== undefined) this.emit('started', started);
  };

  /** Whether an event's line is redundant. */
  readonly #repeats: EventHandlers<boolean> = {
    'worker-ready': ({ worker }) => this.#isStarting && !this.#failed.has(worker.slot),
    listening: () => this.#isStarting && this.#failed.size === 0,
    'worker-restarting': ({ slot, degraded }) => this.#down.has(slot) && !degraded,
    'worker-draining': ({ cause }) => this.#gaveUp || cause === 'reload',
    'worker-stopped': (event) =>
      (this.#gaveUp || event.cause === 'reload') &&
      describeEvent('worker-stopped', event)?.level === 'info',
  };

  readonly #follow: EventHandlers<void> = {
    listening: (event) => {
      this.#listening = event;
      if (!this.quiet || this.#failed.size > 0) return;
      this.#late = setTimeout(() => this.#logAddress(), LATE_MS).unref();
    },
    'worker-ready': ({ worker: { slot }, bootMs }) => {
      this.#down.delete(slot);
      if (!this.#bootMs.has(slot)) this.#bootMs.set(slot, bootMs);
    },
    'worker-failing': ({ worker }) => void this.#down.delete(worker.slot),
    'worker-died': ({ worker: { slot }, cause }) => {
      if (cause === 'boot') this.#down.add(slot);
      else this.#down.delete(slot);
      if (!this.#isStarting) return;
      this.#failed.add(slot);
      this.#logAddress(); // a failed slot delays the event `started`
    },
    'worker-restarting': ({ slot, degraded }) => {
      if (degraded) this.#degraded.add(slot);
    },
    scaling: ({ to }) => (this.workers = to),
    stopping: () => this.#endStart(),
    failed: () => {
      this.#gaveUp = true;
      this.#endStart();
    },
  };

  #logAddress(): void {
    if (this.#late === undefined) return;
    clearTimeout(this.#late);
    this.#late = undefined;
    this.log('listening', this.#listening!);
  }

  #endStart(): void {
    this.#isStarting = false;
    clearTimeout(this.#late);
    this.#late = undefined;
  }

  /** Returns the event `started` once, when startup is complete; otherwise `undefined`. */
  #started(): ClusterEventMap['started'] | undefined {
    if (!this.#isStarting || this.#listening === undefined) return undefined;
    const isWanted = (slot: number): boolean => slot < this.workers;
    const ready = [...this.#bootMs].filter(([slot]) => isWanted(slot)).map(([, bootMs]) => bootMs);
    const lost = [...this.#degraded].filter((slot) => isWanted(slot) && !this.#bootMs.has(slot));
    if (ready.length === 0 || ready.length + lost.length < this.workers) return undefined;
    this.#endStart();
    return {
      ...this.#listening,
      workers: this.workers,
      ready: ready.length,
      durationMs: this.now() - this.startedAt,
      fastestMs: Math.min(...ready),
      slowestMs: Math.max(...ready),
    };
  }
}
