import { transition } from './decide/transition.js';
import { ClusterAcceptors } from './listening/cluster-acceptors.js';
import { startWorker } from './processes/start-worker.js';

/** What a supervisor decides with, and how it reaches the machine. The simulation has others. */
export interface Tools {
  readonly decide: typeof transition;
  readonly startProcess: typeof startWorker;
  readonly acceptors: Pick<ClusterAcceptors, 'close'>;
}

export function newTools(): Tools {
  return { decide: transition, startProcess: startWorker, acceptors: new ClusterAcceptors() };
}
