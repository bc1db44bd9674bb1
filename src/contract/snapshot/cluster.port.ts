import type { ClusterSnapshot, ReloadResult, RestartResult } from './cluster-snapshot.js';
import type { WorkerIdentity } from './worker-identity.js';

/** A listener of any event; `events/` names the events and gives their types. */
export type LinkEventListener = (event: never) => unknown;

/** A snapshot and how long ago the primary took it. */
export interface AgedSnapshot {
  readonly snapshot: ClusterSnapshot;
  /** Age of the snapshot in ms. 0 if the primary answered in time; else this is the last known snapshot. */
  readonly ageMs: number;
}

/** The identity of this process in its cluster, and the commands and events of the cluster. */
export interface ClusterPort {
  readonly identity: WorkerIdentity;
  /** Whether `bootstrap()` started the program. The program then does nothing when a thread imports it. */
  readonly bootstrapped: boolean;
  /** The desired number of worker processes, which share the machine. */
  readonly workers: number;
  /** Resolves within 500 ms, if necessary with the last known snapshot. */
  snapshot(): Promise<AgedSnapshot>;
  /** @throws ClusterError without a primary. */
  reload(): Promise<ReloadResult>;
  /** @throws ClusterError without a primary, or if the number is out of range. */
  scale(workers: number): Promise<ClusterSnapshot>;
  /** @throws ClusterError without a primary, or if a cluster cannot have that slot. */
  restart(slot: number): Promise<RestartResult>;
  /** Calls `listener` for each event of the cluster with that name. */
  onEvent(name: string, listener: LinkEventListener): void;
  offEvent(name: string, listener: LinkEventListener): void;
  /**
   * Logs a warning for the operator, in one line. The same warning of several workers is logged
   * once.
   *
   * @param name the name by which `warnings.ignore` silences the warning.
   */
  warn(message: string, name?: string): void;
}
