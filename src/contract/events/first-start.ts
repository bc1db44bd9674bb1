import type { ClusterEventName, ClusterEventMap, EventHandlers } from './event-map.js';

/** Follows a cluster until each slot has had a worker that is ready. */
export class FirstStart {
  /** How long the first ready worker of each slot took to start, in ms. */
  readonly #bootMs = new Map<number, number>();
  /** Slots in a crash loop: the start does not wait for them. */
  readonly #degraded = new Set<number>();
  #listening: ClusterEventMap['listening'] | undefined;
  #over = false;
  readonly #handlers: EventHandlers<void> = {
    listening: (event) => (this.#listening = event),
    'worker-ready': ({ worker: { slot }, bootMs }) => {
      if (!this.#bootMs.has(slot)) this.#bootMs.set(slot, bootMs);
    },
    'worker-restarting': ({ slot, degraded }) => {
      if (degraded) this.#degraded.add(slot);
    },
    scaling: ({ to }) => (this.workers = to),
    stopping: () => (this.#over = true),
    failed: () => (this.#over = true),
  };

  constructor(
    private workers: number,
    private readonly now = () => performance.now(),
    private readonly startedAt = now(),
  ) {}

  /** @returns the event `started`, once, when the first start is over. */
  after<N extends ClusterEventName>(
    name: N,
    event: ClusterEventMap[N],
  ): ClusterEventMap['started'] | undefined {
    if (this.#over || this.#handlers[name] === undefined) return undefined;
    this.#handlers[name](event);
    return this.#summary();
  }

  #summary(): ClusterEventMap['started'] | undefined {
    const isWanted = (slot: number): boolean => slot < this.workers;
    const ready = [...this.#bootMs].filter(([slot]) => isWanted(slot)).map(([, bootMs]) => bootMs);
    const lost = [...this.#degraded].filter((slot) => isWanted(slot) && !this.#bootMs.has(slot));
    if (this.#over || this.#listening === undefined || ready.length === 0) return undefined;
    if (ready.length + lost.length < this.workers) return undefined;
    this.#over = true;
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
