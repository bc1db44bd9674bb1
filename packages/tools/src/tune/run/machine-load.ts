import { cpus } from 'node:os';

/** If fewer cores than this were idle, the app could not have used more cores than it did. */
const ENOUGH_IDLE_CORES = 0.25;
/** If other programs kept more cores than this busy, their load is reported. */
const MANY_CORES = 0.25;

/** How many cores of this machine were busy with any process, and how many were idle. */
export interface MachineLoad {
  readonly busyCores: number;
  readonly idleCores: number;
}

/** Starts to measure the machine's load. The returned function returns the load since the start. */
export function watchMachine(): () => MachineLoad {
  const startedAt = performance.now();
  const from = totals();
  return () => {
    const to = totals();
    const ms = performance.now() - startedAt;
    return { busyCores: (to.busyMs - from.busyMs) / ms, idleCores: (to.idleMs - from.idleMs) / ms };
  };
}

/** How many cores other programs took from the app. `undefined` if idle cores were left. */
export function coresOfOthers(
  { busyCores, idleCores }: MachineLoad,
  ownCores: number,
): number | undefined {
  const others = busyCores - ownCores;
  // Other programs only matter if no core was idle. In a container these figures cover the host.
  return idleCores < ENOUGH_IDLE_CORES && others > MANY_CORES ? others : undefined;
}

function totals(): { busyMs: number; idleMs: number } {
  let busyMs = 0;
  let idleMs = 0;
  for (const { times } of cpus()) {
    busyMs += times.user + times.nice + times.sys + times.irq;
    idleMs += times.idle;
  }
  return { busyMs, idleMs };
}
