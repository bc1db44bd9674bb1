import type { ClusterEvents, EmitEvent, EventHandlers } from './cluster-events.js';
import { describeEvent } from './describe-event.js';

/** A worker that takes longer to come up is waited for in vain by who wants to know the address. */
const LATE_MS = 5_000;

/**
 * Leaves out lines that say what another one says. All of a first start come in
 * `started`. One is enough of each attempt to bring a worker up that fails, and
 * of each slot that is reloaded, unless the old worker did not end well.
 */
export function quietLog(log: EmitEvent): EmitEvent {
  let starting = true;
  let gaveUp = false;
  /** Slots whose last worker did not come up. */
  const down = new Set<number>();
  /** Slots that had a line of a failure: they have one of its end too. */
  const failed = new Set<number>();
  let listening: ClusterEvents['listening'] | undefined;
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
      tellAddress(); // the rest may take long
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
