import type { WorkerIdentity } from '../snapshot/index.js';

/** The primary sets this variable for a worker: it says who forked the worker and which slot it has. */
export const WORKER_VARIABLE = 'NESTJS_CLUSTER_WORKER';

/** The content of {@link WORKER_VARIABLE}, as JSON. */
export interface WorkerAssignment {
  readonly slot: number;
  readonly generation: number;
  /** The desired number of workers. */
  readonly workers: number;
  readonly primaryPid: number;
  /** The file descriptor on which its watchdog reports. */
  readonly reportTo: number | undefined;
  /** How many of Node's first arguments belong to this package and not to the app. */
  readonly ownArguments: number;
  /** Whether the worker itself prints an error that ends its start; otherwise the primary logs it. */
  readonly printsBootError: boolean;
  /** Whether Nest logs warnings and errors alone until the worker is ready. */
  readonly quiet?: boolean | undefined;
  /** Set if the primary is a doctor, which only examines the app. */
  readonly examination?: ExaminationAssignment | undefined;
}

/** A doctor's settings for the worker that it examines; see the options of its command. */
export interface ExaminationAssignment {
  /** URL of the doctor's module that looks at the app. */
  readonly examiner: string;
  readonly maxConnections?: number | undefined;
  readonly proxyKeepAliveMs?: number | undefined;
}

/** The assignment with the worker's own identity. */
export type OwnAssignment = WorkerAssignment & { readonly identity: WorkerIdentity };

/**
 * Reads the assignment that the primary has put into the environment of this process or of a parent
 * of it; `undefined` without a primary. A text that no primary has written is ignored: someone has
 * exported the variable, and a primary sets it anew for each of its workers.
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
