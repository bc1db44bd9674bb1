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
    /** @returns the path of the file that the worker has written. */
    record(slot: number, recording: Recording): Promise<string>;
  };
}

/** A cluster and its description. */
export interface Controlled {
  readonly cluster: ControlledCluster;
  readonly name: string;
  readonly options: ResolvedClusterOptions;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
}
