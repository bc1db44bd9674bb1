/** The requests and the stack of a worker, whether it is blocked or not. */
export interface WorkerStack {
  readonly slot: number;
  readonly pid: number;
  /** How long the event loop has been blocked, in ms; `null` if it is not blocked. */
  readonly blockedForMs: number | null;
  /** Requests in flight, oldest first, at most ten. The path is without the query. */
  readonly requests: readonly {
    readonly method: string;
    readonly path: string;
    readonly forMs: number;
  }[];
  /** JavaScript frames, innermost first; empty if the event loop is idle. */
  readonly frames: readonly string[];
  /** Why the stack is not known, in words; `null` if it is known. */
  readonly problem: string | null;
}

/** The recordings that also work while a worker is blocked. */
export type RecordingKind = 'cpu-profile' | 'heap-profile';

export interface Recording {
  readonly kind: RecordingKind;
  readonly seconds: number;
}
