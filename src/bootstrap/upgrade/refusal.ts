import { readFileSync } from 'node:fs';
import type { Listening } from '../../supervisor/listening/listening.interface.js';

/** The facts that decide whether this primary can be replaced by another process. */
export interface Situation {
  readonly pid: number;
  readonly ppid: number;
  /** The name of the process with the pid 1; `undefined` without /proc. */
  readonly init: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Whether this primary has itself taken over from another one, so that its parent is an adopter. */
  readonly isSuccessor: boolean;
  /** Whether the parent process has an IPC channel to this one. */
  readonly hasChannel: boolean;
}

/** Programs with the pid 1 that outlive this process and adopt the new primary. */
const ADOPTING = ['systemd', 'init', undefined];

/** Why another process cannot take the place of this one; `undefined` if it can. */
export function refusalOf(
  { balancing, sockets }: Pick<Listening, 'balancing' | 'sockets'>,
  { pid, ppid, init, env, isSuccessor, hasChannel }: Situation,
): string | undefined {
  // A process that the container's runtime has started has no parent in its namespace.
  const isAwaited = ppid === 0 || (ppid === 1 && !ADOPTING.includes(init));
  if (pid === 1 || (isAwaited && !isSuccessor)) {
    const why = pid === 1 ? 'it is PID 1' : 'PID 1 waits for it';
    return `the container ends with this primary, because ${why}; roll out a new container`;
  }
  if (env['pm_id'] !== undefined) {
    return 'pm2 would start the cluster again when this primary leaves; restart it by pm2';
  }
  if (hasChannel) {
    return 'the parent process has an IPC channel to this primary and would see it end (nodemon, fork()); restart the cluster';
  }
  if (balancing !== 'shared' && balancing !== 'none') {
    return `balancing '${balancing}' has sockets that cannot be handed over; restart the cluster, or set balancing to 'shared'`;
  }
  if (sockets.some(({ handle }) => (handle?.fd ?? -1) < 0)) {
    return 'this Node does not let a primary hold its socket; restart the cluster';
  }
  return undefined;
}

/** @param isSuccessor see {@link Situation}. */
export function currentSituation(isSuccessor: boolean): Situation {
  const { pid, ppid, env, connected } = process;
  return { pid, ppid, init: nameOfInit(), env, isSuccessor, hasChannel: connected };
}

function nameOfInit(): string | undefined {
  try {
    return readFileSync('/proc/1/comm', 'utf8').trim();
  } catch {
    return undefined;
  }
}
