import type { ClusterState, Slot } from '../../../src/decide/cluster-state.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';

/** The slots, their workers, the replacement and all that is waiting fit together. */
export class Places implements Invariant {
  after({ before, state, world }: Observation): void {
    const { slots, workers, replacement, desired, shutdown, timers } = state;
    if (
      before.slots === slots &&
      before.workers === workers &&
      before.replacement === replacement &&
      before.timers === timers &&
      before.replacementsWaiting === state.replacementsWaiting &&
      before.reload === state.reload &&
      before.shutdown === shutdown &&
      before.desired === desired
    ) {
      return;
    }
    this.#processes(state, world.processes);
    for (const worker of workers.values()) {
      if (worker.state === 'draining') continue;
      const isCandidate =
        replacement !== undefined &&
        replacement.phase !== 'handing-over' &&
        replacement.candidate === worker.id &&
        replacement.slot === worker.slot;
      hold(
        'a slot has one worker, and a second during a replacement',
        isCandidate !== (slots[worker.slot]!.worker === worker.id),
        worker,
      );
    }
    for (const slot of slots) this.#slot(state, slot);
    this.#replacement(state);
    // A reload without a release has only begun: the next event brings its program.
    if (state.reload?.release !== undefined) {
      const goesOn =
        replacement?.cause === 'reload' ||
        state.replacementsWaiting.some(({ cause }) => cause === 'reload');
      hold('a reload goes on', goesOn, state.reload);
    }
    this.#ofReload(state);
    if (shutdown !== undefined) {
      const { reload, replacementsWaiting: waiting, pendingRequests } = state;
      const left = waiting.length + pendingRequests.length;
      const none = reload === undefined && replacement === undefined && left === 0;
      hold('a shutdown gives up what is under way, and tells who waits for it', none, state);
    }
  }

  #processes({ workers }: ClusterState, processes: ReadonlyMap<number, unknown>): void {
    let same = processes.size === workers.size;
    for (const id of processes.keys()) same &&= workers.get(id) !== undefined;
    hold('the workers are the processes that have not exited', same, {
      processes: [...processes.keys()],
      workers: [...workers.keys()],
    });
  }

  #slot({ workers, desired, shutdown, replacement, timers }: ClusterState, slot: Slot): void {
    const { index, worker: id } = slot;
    const hasCandidate = replacement?.slot === index && replacement.phase !== 'handing-over';
    if (id !== undefined) {
      const worker = workers.get(id);
      const serves = worker !== undefined && worker.state !== 'draining' && worker.slot === index;
      hold('the worker of a slot starts or serves', serves, { slot, worker });
      hold('a slot that is not wanted has no worker', index < desired, slot);
    } else if (index < desired && shutdown === undefined && !hasCandidate) {
      const waits = timers.has(`start-due slot ${index}`);
      hold('a slot without a worker waits for one', waits, slot);
    }
  }

  /** A reload that is over leaves no candidate, and one that reverts none of the failed release. */
  #ofReload({ reload, replacement, replacementsWaiting }: ClusterState): void {
    const candidacies = [
      ...replacementsWaiting,
      ...(replacement === undefined || replacement.phase === 'handing-over' ? [] : [replacement]),
    ].filter(({ cause }) => cause === 'reload');
    const isOver = reload === undefined;
    hold('a reload that is over starts nothing', !isOver || candidacies.length === 0, candidacies);
    if (isOver || reload.outcome === 'completed') return;
    const isBack = candidacies.every(({ release }) => release.generation !== reload.generation);
    hold('the way back starts nothing of what failed', isBack, candidacies);
  }

  #replacement({ replacement, workers, desired }: ClusterState): void {
    if (replacement === undefined) return;
    const seen = replacement;
    if (replacement.phase === 'handing-over') {
      const worker = workers.get(replacement.predecessor);
      hold('who hands over drains', worker?.state === 'draining', seen);
      return;
    }
    hold('only wanted slots have a replacement', replacement.slot < desired, seen);
    const candidate = workers.get(replacement.candidate);
    const state = replacement.phase === 'booting' ? 'starting' : 'ready';
    hold('a candidate is as far as its replacement', candidate?.state === state, seen);
  }
}
