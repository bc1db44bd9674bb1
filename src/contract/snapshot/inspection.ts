/** What a worker is doing, blocked or not. */
export interface WorkerStack {
  readonly slot: number;
  readonly pid: number;
  /** `null` where its event loop turns. */
  readonly blockedForMs: number | null;
  /** In flight, oldest first; with a `problem` only the one that began last. The path is without the query. */
  readonly requests: readonly {
    readonly method: string;
    readonly path: string;
    readonly forMs: number;
  }[];
  /** JavaScript frames, innermost first; none where the event loop waits for something to do. */
  readonly frames: readonly string[];
  /** Why its stack is not known, in words. */
  readonly problem: string | null;
}

/** What can be recorded of a worker also while it is blocked. */
export const RECORDINGS = ['cpu-profile', 'heap-profile'] as const;
export type RecordingKind = (typeof RECORDINGS)[number];

export interface Recording {
  readonly kind: RecordingKind;
  readonly seconds: number;
}
