import type { ClusterSnapshot, ReloadResult, RestartResult } from './cluster-snapshot.js';
import type { WorkerIdentity } from './worker-identity.js';

/** A listener of any event; `events/` names the events and gives their types. */
export type LinkEventListener = (event: never) => unknown;

/** A snapshot and how long ago the primary took it. */
export interface AgedSnapshot {
  readonly snapshot: ClusterSnapshot;
  /** 0 unless the primary did not answer in time and this is the last known one. */
  readonly ageMs: number;
}

/** The process in its cluster, and the commands and events of the cluster. */
export interface ClusterPort {
  readonly identity: WorkerIdentity;
  /** Whether `bootstrap()` started the program, so that the program does nothing when a thread imports it. */
  readonly bootstrapped: boolean;
  /** The desired number of worker processes, which share the machine. */
  readonly workers: number;
  /** Answers within 500 ms, with the last known snapshot if need be. */
  snapshot(): Promise<AgedSnapshot>;
  /** @throws ClusterError without a primary. */
  reload(): Promise<ReloadResult>;
  /** @throws ClusterError without a primary, or if the number is out of range. */
  scale(workers: number): Promise<ClusterSnapshot>;
  /** @throws ClusterError without a primary, or if a cluster cannot have that slot. */
  restart(slot: number): Promise<RestartResult>;
  /** Calls `listener` on each event of the cluster with that name; it does not ask the primary first. */
  onEvent(name: string, listener: LinkEventListener): void;
  offEvent(name: string, listener: LinkEventListener): void;
  /**
   * Tells the operator something, in one line, once for all workers.
   *
   * @param name the name by which `doctor.ignore` silences it.
   */
  warn(message: string, name?: string): void;
}
