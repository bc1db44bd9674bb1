import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';

/** Each worker that can answer has one unanswered ping at a time, and only its answer counts. */
export class Pings implements Invariant {
  readonly #outstanding = new Map<number, number>();

  after({ before, state, event, effects }: Observation): void {
    if (event.type === 'worker') {
      const { worker: id } = event;
      if (event.event.type === 'exited') this.#outstanding.delete(id);
      if (event.event.type === 'pong') {
        const { seq } = event.event;
        const owed = this.#outstanding.get(id);
        const answers = owed !== undefined && (seq === undefined || seq === owed);
        if (answers) this.#outstanding.delete(id);
        const { ping } = state.workers.get(id) ?? {};
        const right = (ping === undefined) === (answers || owed === undefined);
        hold('only the answer to a ping counts', right || before.workers.get(id) === undefined, {
          seq,
          owed,
        });
      }
    }
    for (const effect of effects) {
      if (effect.type !== 'send' || effect.message.type !== 'ping') continue;
      const none = !this.#outstanding.has(effect.worker);
      hold('one ping at a time is unanswered', none, effect);
      this.#outstanding.set(effect.worker, effect.message.seq);
    }
    if (event.type !== 'heartbeat-due') return;
    for (const { id, state: is } of state.workers.values()) {
      const pinged = is === 'starting' || this.#outstanding.has(id);
      hold('everybody who can answer is pinged', pinged, id);
    }
  }
}
