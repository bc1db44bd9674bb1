import type { ClusterState, Release, Worker } from '../../../src/decide/cluster-state.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';

/** A release that is being rolled out, or is observed after that. */
interface Watched {
  readonly generation: number;
  /** The release to revert to. `undefined` if that one did not run well. */
  readonly before: Release | undefined;
  /** When every worker ran the release, in ms. */
  readonly completedAt?: number;
}

/** A release that fails is reverted, once, if the previous release is there. */
export class Releases implements Invariant {
  #watched: Watched | undefined;
  /** The last release that was completed and not reverted. */
  #current: Release | undefined;
  readonly #takenBack = new Set<number>();
  /** The generations of workers that an error has ended, by its text. */
  readonly #endings = new Map<string, Set<number>>();
  /** Failures that count against the watched release. */
  #strikes = 0;
  /** Whether failures have shown that the watched release does not work. */
  #isToBlame = false;

  after(step: Observation): void {
    const { effects, state, before } = step;
    this.#current ??= before.release;
    this.#found(step);
    if (state.shutdown === undefined) this.#judge(step);
    for (const effect of effects) {
      if (effect.type === 'fork') {
        const isDead = this.#takenBack.has(effect.release.generation);
        hold('a release that was taken back is not started again', !isDead, effect);
      }
      if (effect.type !== 'emit') continue;
      if (effect.name === 'reload-reverting') {
        const { generation, to } = effect.event;
        const once = !this.#takenBack.has(generation) && to < generation;
        hold('a release is taken back once, to an older one', once, effect);
        this.#takenBack.add(generation);
      } else if (effect.name === 'reload-ended') this.#ended(step, effect.event);
    }
  }

  #found({ event, before, state }: Observation): void {
    if (event.type !== 'program-found' || before.reload?.outcome !== 'completed') return;
    const { release } = state.reload ?? before.reload;
    if (release === undefined) return;
    const isAgain = isSame(release, this.#current!);
    const isWell =
      before.everReady &&
      before.slots.slice(0, before.desired).every(({ failures }) => !failures.degraded);
    const { generation } = release;
    const usual = isWell ? this.#current : undefined;
    const isObserved = this.#watched?.generation === this.#current!.generation;
    const earlier = isAgain && isObserved && before.previous ? before.previous : usual;
    this.#watched = { generation, before: earlier };
    this.#strikes = 0;
    this.#isToBlame = false;
  }

  /** Workers that do not come up, or two that fail of new errors, have to revert a watched release or end its reload. */
  #judge({ effects, before, state, world }: Observation): void {
    for (const effect of effects) {
      if (effect.type !== 'emit') continue;
      const worker = before.workers.get((effect.event as { worker: number }).worker);
      const text = textOf(effect, worker);
      if (text === undefined) continue;
      if (worker === undefined || before.slots[worker.slot]!.worker !== worker.id) continue;
      const isOfRelease =
        this.#watched?.before !== undefined && worker.generation === this.#watched.generation;
      const counts = isOfRelease && this.#countsAgainst(worker, text, world);
      this.#endings.set(text, (this.#endings.get(text) ?? new Set()).add(worker.generation));
      this.#isToBlame ||= counts;
      if (!counts || !this.#isWatched(worker, before, world)) continue;
      const ended = effects.some((each) => each.type === 'emit' && each.name === 'reload-ended');
      const goesBack = state.reload !== undefined && state.reload.outcome !== 'completed';
      hold('a release that fails is not left standing', goesBack || ended, {
        worker,
        watched: this.#watched,
        reload: state.reload,
      });
    }
  }

  #countsAgainst(worker: Worker, text: string, { clock, settings }: Observation['world']) {
    if (worker.state === 'starting' || worker.readyAt === undefined) return true;
    if (clock.now - worker.readyAt >= settings.options.reload.observeMs) return false;
    const { generation } = this.#watched!.before!;
    const endings = [...(this.#endings.get(text) ?? [])];
    if (endings.some((each) => each <= generation)) return false;
    this.#strikes += 1;
    return this.#strikes >= 2;
  }

  #isWatched(worker: Worker, state: ClusterState, { clock, settings }: Observation['world']) {
    const { slot, id, generation } = worker;
    const watched = this.#watched;
    if (watched?.before === undefined || generation !== watched.generation) return false;
    if (slot >= state.desired || state.slots[slot]!.worker !== id) return false;
    if (watched.completedAt === undefined) return state.reload?.outcome === 'completed';
    // A release is not observed while another reload is under way.
    if (state.reload !== undefined || isSame(watched.before, this.#current!)) return false;
    return clock.now - watched.completedAt < settings.options.reload.observeMs - 1;
  }

  #ended({ state, before, world }: Observation, { outcome, reason }: Ended): void {
    const isRight = outcome !== 'reverted' || !this.#watched || this.#isToBlame;
    hold('one failure of a worker that served reverts no release', isRight, before.reload);
    const watched = this.#watched;
    const { release, generation: ended } = before.reload!;
    // A reload that found no program leaves the observed release as it is.
    if (release === undefined && before.reload!.outcome === 'completed') return;
    if (outcome === 'completed') {
      this.#current = state.release;
      if (watched !== undefined) this.#watched = { ...watched, completedAt: world.clock.now };
      return;
    }
    if (this.#takenBack.has(before.reload!.generation)) this.#current = state.release;
    this.#watched = undefined;
    if (outcome === 'aborted' && reason?.includes('not every worker')) return;
    if (state.shutdown !== undefined || release === undefined) return;
    for (const { index, worker } of state.slots.slice(0, state.desired)) {
      const generation = worker === undefined ? undefined : state.workers.get(worker)?.generation;
      const isBack = generation !== ended || !this.#takenBack.has(ended);
      hold('a release that was taken back runs nowhere', isBack, { index, generation });
    }
  }
}

interface Ended {
  readonly outcome: string;
  readonly reason: string | null;
}

function isSame(a: Pick<Release, 'script'>, b: Pick<Release, 'script'>): boolean {
  return a.script === b.script;
}

/** The words for a failure that is not a kill from outside; `undefined` for any other event. */
function textOf(
  effect: Observation['effects'][number] & { type: 'emit' },
  worker: Worker | undefined,
): string | undefined {
  const inWords = (error: { name: string; message: string }) => `${error.name}: ${error.message}`;
  if (effect.name === 'worker-failing') {
    const { error } = effect.event;
    return error === null ? '' : inWords(error);
  }
  if (effect.name === 'worker-draining') {
    const isClosed = worker?.state === 'ready' && worker.leaving === 'closed';
    return isClosed && effect.event.cause === 'signal' ? 'its app closed itself' : undefined;
  }
  if (effect.name !== 'worker-died' || effect.event.cause === 'killed') return undefined;
  const { detail, error } = effect.event;
  return error === null ? detail : `${detail}: ${inWords(error)}`;
}
