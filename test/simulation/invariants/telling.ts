import {
  type Candidacy,
  type ClusterState,
  replacementsOf,
  type Worker,
  type WorkerId,
} from '../../../src/decide/cluster-state.js';
import type { Effect } from '../../../src/decide/effect.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';

/** A change of a worker's state is reported once. Nothing is sent to a worker that has exited. */
export class Telling implements Invariant {
  readonly #ended = new Set<WorkerId>();
  #served = 0;

  after({ before, state, event, effects }: Observation): void {
    for (const effect of effects) this.#effect(before, state, effect);
    if (before.workers !== state.workers) {
      for (const worker of before.workers.values()) {
        const now = state.workers.get(worker.id);
        if (now !== worker) this.#changed(worker, now, effects);
      }
      for (const worker of state.workers.values()) {
        if (before.workers.get(worker.id)) continue;
        const forked = effects.some(({ type, ...of }) => type === 'fork' && isOf(of, worker.id));
        hold('a new worker is forked', forked, worker);
      }
    }
    if (event.type === 'worker' && event.event.type === 'ready') {
      const was = before.workers.get(event.worker);
      const serves = was?.state === 'draining' && was.retirement && was.readyAt === undefined;
      const asked = effects.some((each) => each.type === 'send' && each.message.type === 'drain');
      hold('who came up while it was ended is asked to drain', !serves || asked, was);
    }
    if (event.type === 'worker' && event.event.type === 'exited') {
      hold('what has exited is forgotten', !state.workers.get(event.worker), event);
    }
    if (before.desired !== state.desired) {
      hold('scaling is told', emitted(effects, 'scaling').length === 1);
    }
  }

  atRest({ state }: Pick<Observation, 'state'>): void {
    if (state.shutdown !== undefined) return;
    hold('a cluster that serves has started', state.everReady && this.#served === 1);
  }

  #effect(before: ClusterState, state: ClusterState, effect: Effect): void {
    if (effect.type === 'fork') {
      const none = before.shutdown === undefined && state.shutdown === undefined;
      hold('nothing is forked once a shutdown has begun', none, effect);
      hold('only wanted slots get workers', effect.slot < state.desired, effect);
    } else if (effect.type === 'send' || effect.type === 'kill') {
      hold(
        'nothing is sent to what has exited',
        state.workers.get(effect.worker) !== undefined,
        effect,
      );
    } else if (effect.type === 'serving') {
      this.#served += 1;
      hold('a cluster starts once', this.#served === 1);
    }
  }

  #changed(was: Worker, is: Worker | undefined, effects: readonly Effect[]): void {
    const { id } = was;
    if (is === undefined) {
      const gone = effects.filter((each) => each.type === 'gone' && each.worker === id).length;
      const told =
        emitted(effects, 'worker-died', id).length + emitted(effects, 'worker-stopped', id).length;
      hold('an exit is told once', gone === 1 && told === 1 && !this.#ended.has(id), was);
      this.#ended.add(id);
      return;
    }
    if (was.state === 'starting' && is.state === 'ready') {
      const joined = effects.filter((each) => each.type === 'joined' && each.worker === id).length;
      const told = emitted(effects, 'worker-ready', id).length;
      hold('a worker that is ready is told once', joined === 1 && told === 1, was);
    }
    if (is.state !== 'draining') return;
    const sent = effects.filter(
      (each) => each.type === 'send' && each.worker === id && each.message.type === 'drain',
    ).length;
    if (was.state === 'draining') {
      const becameReady = was.readyAt === undefined && is.readyAt !== undefined;
      hold('who drains is asked once', sent === (becameReady ? 1 : 0), is);
      return;
    }
    if (is.retirement === undefined) {
      const told = emitted(effects, 'worker-failing', id).length;
      hold('who drains by itself is told once', told === 1 && sent === 0, is);
      return;
    }
    const ended = effects.some((each) => each.type === 'kill' && each.worker === id);
    const asked = was.state === 'ready' ? sent === 1 : sent === 0 && ended;
    const told = emitted(effects, 'worker-draining', id).length;
    hold('who is to leave is asked, and that is told, once', asked && told === 1, is);
  }
}

/** The emitted events with that name, of one worker or of all. */
export function emitted(effects: readonly Effect[], name: string, worker?: WorkerId): Effect[] {
  return effects.filter(
    (each) =>
      each.type === 'emit' &&
      each.name === name &&
      (worker === undefined || isOf(each.event, worker)),
  );
}

/** The replacements whose new worker has not taken over yet. */
export function candidaciesOf(state: ClusterState): readonly Candidacy[] {
  return replacementsOf(state).filter((each) => each.phase !== 'handing-over');
}

/** The worker that the event or its timer belongs to. */
export function workerOf(event: Observation['event']): WorkerId | undefined {
  if (event.type === 'worker') return event.worker;
  return event.type === 'due' && 'worker' in event.timer ? event.timer.worker : undefined;
}

function isOf(of: object, worker: WorkerId): boolean {
  return Reflect.get(of, 'worker') === worker;
}
