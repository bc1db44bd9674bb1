import type { EventListeners } from '../contract/events/index.js';
import type { ResolvedClusterOptions } from '../contract/options/index.js';
import type {
  ClusterSnapshot,
  Recording,
  ReloadResult,
  RestartResult,
  WorkerStack,
} from '../contract/snapshot/index.js';

/** The state and the actions of a cluster that the control socket needs. */
export interface ControlledCluster {
  /** Whether a reload is under way, for any reason. */
  readonly reloading: boolean;
  snapshot(): ClusterSnapshot;
  reload(reason: string): Promise<ReloadResult>;
  scale(workers: number, reason: string): Promise<ClusterSnapshot>;
  restart(slot: number, reason: string): Promise<RestartResult>;
  stop(reason: string): void;
  /** Inspects a worker, even if the worker is blocked. The methods throw an `InspectionError`. */
  readonly inspections: {
    stack(slot: number): Promise<WorkerStack>;
    record(slot: number, recording: Recording, gone: AbortSignal): AsyncGenerator<Buffer, void>;
    snapshot(slot: number, gone: AbortSignal): AsyncGenerator<Buffer, void>;
  };
}

/** A cluster, its events and its description. */
export interface Controlled {
  readonly cluster: ControlledCluster;
  /** Emits the events of the cluster by their names. */
  readonly events: Pick<EventListeners, 'on' | 'off'>;
  readonly name: string;
  readonly options: ResolvedClusterOptions;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
}
