import { setTimeout as delay } from 'node:timers/promises';

/** The length of an interval whose use decides, in ms. */
const INTERVAL_MS = 50;

/** The event loop is idle if it has used less than this share of an interval. */
const IDLE_BELOW = 0.5;

/** Maximum wait for an idle interval, in ms. An app under full load has none. */
const PATIENCE_MS = 1_000;

/**
 * Work that a process does once it serves, because no first request needs it. One piece is done
 * after the other, each after an interval in which the event loop was idle.
 */
export class IdleWork {
  /** The process serves from now on. */
  start!: () => void;
  #last: Promise<unknown> = new Promise<void>((resolve) => (this.start = resolve));

  /** @param failed is called with the error of a piece. The other pieces are done anyway. */
  constructor(private readonly failed: (error: unknown) => void) {}

  add(piece: () => unknown): void {
    this.#last = this.#last.then(untilIdle).then(piece).catch(this.failed);
  }
}

async function untilIdle(): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const before = performance.eventLoopUtilization();
    await delay(INTERVAL_MS, undefined, { ref: false });
    const { utilization } = performance.eventLoopUtilization(before);
    if (utilization < IDLE_BELOW || performance.now() >= deadline) return;
  }
}
