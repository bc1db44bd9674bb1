import type { ClusterEvent, WorkerEvent } from '../../src/decide/cluster-event.js';
import type { Requester, ClusterState, WorkerId } from '../../src/decide/cluster-state.js';
import type { Transition } from '../../src/decide/transition.js';
import type { SIGINT, World } from './world.js';

/** The primary of a simulated machine. */
export interface Primary {
  readonly state: ClusterState;
  /** How many ms a deadline of a worker may come early, for each suspension of the primary. */
  readonly earlyMs: number;
  begin(): void;
  stop(signal: typeof SIGINT | undefined): void;
  reload(requester: Requester): void;
  scale(workers: number, requester: Requester): void;
  restart(slot: number, requester: Requester): void;
  /** Takes an event of a worker: a message, or the exit of its process. */
  hear(worker: WorkerId, event: WorkerEvent): void;
  /** Checks the last step, if it has not been checked yet. @throws Broken */
  settle(): void;
}

/** A transition with its event and the state before it, for the invariants and the diary. */
export interface Observation extends Transition {
  readonly before: ClusterState;
  readonly event: ClusterEvent;
  readonly world: World;
}
