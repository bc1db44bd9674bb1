import type { EventListeners } from '../contract/events/index.js';
import type { ResolvedClusterOptions } from '../contract/options/index.js';
import type {
  ClusterSnapshot,
  Recording,
  ReloadResult,
  RestartResult,
  WorkerStack,
} from '../contract/snapshot/index.js';

/** What can be seen of a cluster, and asked of it. */
export interface ControlledCluster {
  /** Whether a reload is under way, whoever asked for it. */
  readonly reloading: boolean;
  snapshot(): ClusterSnapshot;
  reload(reason: string): Promise<ReloadResult>;
  scale(workers: number, reason: string): Promise<ClusterSnapshot>;
  restart(slot: number, reason: string): Promise<RestartResult>;
  stop(reason: string): void;
  /** Looks into a worker, also one that is blocked. What they throw is an `InspectionError`. */
  readonly inspections: {
    stack(slot: number): Promise<WorkerStack>;
    record(slot: number, recording: Recording, gone: AbortSignal): AsyncGenerator<Buffer, void>;
    snapshot(slot: number, gone: AbortSignal): AsyncGenerator<Buffer, void>;
  };
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
