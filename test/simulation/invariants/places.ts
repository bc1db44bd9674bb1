import {
  type ClusterState,
  type Replacement,
  replacementsOf,
  type Slot,
} from '../../../src/decide/cluster-state.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';
import { candidaciesOf } from './telling.js';

/** The slots, their workers, the replacement and all that is waiting fit together. */
export class Places implements Invariant {
  after({ before, state, world }: Observation): void {
    const { slots, workers, desired, shutdown, timers } = state;
    if (
      before.slots === slots &&
      before.workers === workers &&
      before.timers === timers &&
      before.replacementsWaiting === state.replacementsWaiting &&
      before.reload === state.reload &&
      before.shutdown === shutdown &&
      before.desired === desired
    ) {
      return;
    }
    this.#processes(state, world.processes);
    const candidacies = candidaciesOf(state);
    for (const worker of workers.values()) {
      if (worker.state === 'draining') continue;
      const isCandidate = candidacies.some(
        ({ candidate, slot }) => candidate === worker.id && slot === worker.slot,
      );
      hold(
        'a slot has one worker, and a second during a replacement',
        isCandidate !== (slots[worker.slot]!.worker === worker.id),
        worker,
      );
    }
    for (const slot of slots) this.#slot(state, slot);
    const replacements = replacementsOf(state);
    for (const each of replacements) this.#replacement(state, each);
    const isNew = (each: Replacement): boolean => !replacementsOf(before).includes(each);
    const begun = replacements.some((each) => each.phase === 'booting' && isNew(each));
    if (begun) this.#surge(replacements, desired);
    // A reload without a release has only begun: the next event brings its program.
    if (state.reload?.release !== undefined) {
      const all = [...replacements, ...state.replacementsWaiting];
      const goesOn = all.some(({ cause }) => cause === 'reload');
      hold('a reload goes on', goesOn, state.reload);
    }
    this.#ofReload(state);
    if (shutdown !== undefined) {
      const { reload, replacementsWaiting: waiting, pendingRequests } = state;
      const left = replacements.length + waiting.length + pendingRequests.length;
      const none = reload === undefined && left === 0;
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

  #slot(state: ClusterState, slot: Slot): void {
    const { workers, desired, shutdown, timers } = state;
    const { index, worker: id } = slot;
    const hasCandidate = candidaciesOf(state).some((each) => each.slot === index);
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
  #ofReload(state: ClusterState): void {
    const { reload } = state;
    const candidacies = [...state.replacementsWaiting, ...candidaciesOf(state)].filter(
      ({ cause }) => cause === 'reload',
    );
    const isOver = reload === undefined;
    hold('a reload that is over starts nothing', !isOver || candidacies.length === 0, candidacies);
    if (isOver || reload.outcome === 'completed') return;
    const isBack = candidacies.every(({ release }) => release.generation !== reload.generation);
    hold('the way back starts nothing of what failed', isBack, candidacies);
  }

  /** A reload replaces at most a quarter of the slots at once. Nothing else overlaps. */
  #surge(replacements: readonly Replacement[], desired: number): void {
    const most = replacements.every(({ cause }) => cause === 'reload') ? Math.ceil(desired / 4) : 1;
    const fits = replacements.length <= most;
    hold('a reload replaces a quarter of the slots at once', fits, replacements);
    const booting = replacements.filter(({ phase }) => phase === 'booting');
    hold('one candidate boots at a time', booting.length === 1, replacements);
  }

  #replacement({ workers, desired }: ClusterState, replacement: Replacement): void {
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
