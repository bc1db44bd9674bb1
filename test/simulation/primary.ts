import type { ClusterEvent, WorkerEvent } from '../../src/supervisor/decide/cluster-event.js';
import type {
  Requester,
  ClusterState,
  WorkerId,
} from '../../src/supervisor/decide/cluster-state.js';
import type { Transition } from '../../src/supervisor/decide/transition.js';
import type { SIGINT, World } from './world.js';

/** The primary of a simulated machine. */
export interface Primary {
  readonly state: ClusterState;
  /** By how much a deadline of a worker may come early for each suspension. */
  readonly earlyMs: number;
  begin(): void;
  stop(signal: typeof SIGINT | undefined): void;
  reload(requester: Requester): void;
  scale(workers: number, requester: Requester): void;
  restart(slot: number, requester: Requester): void;
  /** Reads what a worker has said, or the end of its process. */
  hear(worker: WorkerId, event: WorkerEvent): void;
  /** Checks what it has not checked yet. @throws Broken */
  settle(): void;
}

/** What a transition came from and led to, for whoever checks or tells it. */
export interface Observation extends Transition {
  readonly before: ClusterState;
  readonly event: ClusterEvent;
  readonly world: World;
}
