import { transition } from './decide/transition.js';
import { ClusterAcceptors } from './listening/cluster-acceptors.js';
import { forkWorker } from './processes/fork-worker.js';
import type { HubDoor } from './serve/hub-door.js';

/** The functions with which a supervisor decides and acts. The simulation test replaces them. */
export interface Dependencies {
  readonly decide: typeof transition;
  readonly startProcess: typeof forkWorker;
  readonly acceptors: Pick<ClusterAcceptors, 'close'>;
  readonly hub: Pick<HubDoor, 'address'>;
}

export function newDependencies(hub: HubDoor): Dependencies {
  return { decide: transition, startProcess: forkWorker, acceptors: new ClusterAcceptors(), hub };
}
