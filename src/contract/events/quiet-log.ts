import type { ClusterEventMap, EmitEvent, EventHandlers } from './event-map.js';
import { describeEvent } from './describe-event.js';

/** How long the line with the address waits for the other workers to become ready, in ms. */
const LATE_MS = 5_000;

/**
 * Leaves out lines that repeat another line. In a first start, `started` sums up ready workers.
 * A failed attempt to start a worker logs one line. In a reload each slot logs one line, unless
 * something went wrong at the end of the old worker.
 */
export function quietLog(log: EmitEvent): EmitEvent {
  let starting = true;
  let gaveUp = false;
  /** Slots whose last worker did not become ready. */
  const down = new Set<number>();
  /** Slots whose failure was logged, so that their recovery is logged too. */
  const failed = new Set<number>();
  let listening: ClusterEventMap['listening'] | undefined;
  let late: NodeJS.Timeout | undefined;
  const tellAddress = (): void => {
    clearTimeout(late);
    if (listening !== undefined) log('listening', listening);
    listening = undefined;
  };
  const endStart = (): void => {
    clearTimeout(late);
    starting = false;
    listening = undefined;
  };
  const isLeftOut: EventHandlers<boolean> = {
    'worker-ready': ({ worker }) => starting && !failed.has(worker.slot),
    listening: () => starting && failed.size === 0,
    'worker-restarting': ({ slot, degraded }) => down.has(slot) && !degraded,
    'worker-draining': ({ cause }) => gaveUp || cause === 'reload',
    'worker-stopped': (event) =>
      (gaveUp || event.cause === 'reload') &&
      describeEvent('worker-stopped', event).level === 'info',
  };
  const after: EventHandlers<void> = {
    listening: (event) => {
      if (!isLeftOut.listening?.(event)) return;
      listening = event;
      late = setTimeout(tellAddress, LATE_MS).unref();
    },
    'worker-ready': ({ worker }) => void down.delete(worker.slot),
    'worker-failing': ({ worker }) => void down.delete(worker.slot),
    'worker-died': ({ worker: { slot }, cause }) => {
      if (cause === 'boot') down.add(slot);
      else down.delete(slot);
      if (!starting) return;
      failed.add(slot);
      tellAddress(); // the other workers may take long
    },
    started: endStart,
    stopping: endStart,
    failed: () => {
      gaveUp = true;
      endStart();
    },
  };
  return (name, event) => {
    if (!isLeftOut[name]?.(event)) log(name, event);
    after[name]?.(event);
  };
}
