import { cpus } from 'node:os';

/** With less idle than the first, nothing is left. With more than the second, others take much. */
const ENOUGH_IDLE_CORES = 0.25;
const MANY_CORES = 0.25;

/** Cores of this machine that were busy and idle, with the load of all processes. */
export interface MachineLoad {
  readonly busyCores: number;
  readonly idleCores: number;
}

/** Begins to watch the machine. The returned function tells the load since then. */
export function watchMachine(): () => MachineLoad {
  const startedAt = performance.now();
  const from = totals();
  return () => {
    const to = totals();
    const ms = performance.now() - startedAt;
    return { busyCores: (to.busyMs - from.busyMs) / ms, idleCores: (to.idleMs - from.idleMs) / ms };
  };
}

/** Busy cores of other programs, or `undefined` if cores were left. */
export function coresOfOthers(
  { busyCores, idleCores }: MachineLoad,
  ownCores: number,
): number | undefined {
  const others = busyCores - ownCores;
  // In a container the figures are the host's: other programs matter only if no cores are left.
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
