import type { EventListeners } from '../events/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import type { ClusterSnapshot, ReloadResult, RestartResult } from '../snapshot/index.js';

/** What can be seen of a cluster, and asked of it. */
export interface ControlledCluster {
  /** Whether a reload is under way, whoever asked for it. */
  readonly reloading: boolean;
  snapshot(): ClusterSnapshot;
  reload(reason: string): Promise<ReloadResult>;
  scale(workers: number, reason: string): Promise<ClusterSnapshot>;
  restart(slot: number, reason: string): Promise<RestartResult>;
  stop(reason: string): void;
}

/** A cluster and what is known of it besides. */
export interface Controlled {
  readonly cluster: ControlledCluster;
  /** Emits the events of the cluster by their names. */
  readonly events: Pick<EventListeners, 'on' | 'off'>;
  readonly name: string;
  readonly options: ResolvedClusterOptions;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
}
