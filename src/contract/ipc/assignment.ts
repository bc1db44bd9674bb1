import type { WorkerIdentity } from '../snapshot/index.js';

/** Set in a worker's environment by the primary; says who forked it and which slot it has. */
export const WORKER_VARIABLE = 'NESTJS_CLUSTER_WORKER';

/** What {@link WORKER_VARIABLE} holds, as JSON. */
export interface WorkerAssignment {
  readonly slot: number;
  readonly generation: number;
  /** Workers there are to be. */
  readonly workers: number;
  readonly primaryPid: number;
  /** Descriptor on which its watchdog reports. */
  readonly reportTo: number | undefined;
  /** How many of the first arguments of Node are not the app's business. */
  readonly ownArguments: number;
  /** Whether it prints an error that keeps it from coming up; else the primary says it in a line. */
  readonly printsBootError: boolean;
  /** Whether Nest logs warnings and errors alone until the worker is ready. */
  readonly quiet?: boolean | undefined;
  /** The primary is a doctor: it wants to know what the app is, and nothing else. */
  readonly examination?: ExaminationAssignment | undefined;
}

/** What a doctor tells the worker that it examines; see the options of its command. */
export interface ExaminationAssignment {
  readonly maxConnections?: number | undefined;
  readonly proxyKeepAliveMs?: number | undefined;
}

/** The same as its worker knows it. */
export type OwnAssignment = WorkerAssignment & { readonly identity: WorkerIdentity };

/**
 * What the primary has put into the environment of this process, or of one that started it;
 * `undefined` where there is no primary. A text that no primary has written counts as none: someone
 * has exported the variable, and a primary sets it anew for each of its workers.
 */
export function readAssignment(env: NodeJS.ProcessEnv): WorkerAssignment | undefined {
  const assigned = parse(env[WORKER_VARIABLE]);
  if (assigned === undefined) return undefined;
  // A primary of an older version does not say who prints.
  return { printsBootError: true, ...assigned };
}

type Parsed = Omit<WorkerAssignment, 'printsBootError'>;

function parse(text = ''): Parsed | undefined {
  try {
    const assigned = JSON.parse(text) as Parsed | null;
    const numbers = [assigned?.slot, assigned?.generation, assigned?.primaryPid];
    return numbers.every(Number.isInteger) ? (assigned ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}
