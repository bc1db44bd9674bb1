import {
  type Candidacy,
  replacementsOf,
  type WorkerId,
} from '../../../src/decide/cluster-state.js';
import { EXIT_TIMEOUT_MS } from '../../../src/decide/step.js';
import { CANARY_MS } from '../../../src/decide/replace/replacement.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';
import { candidaciesOf } from './telling.js';

/** A candidate and what is known about it. It may take over only if all of this is good. */
interface Proof {
  readyAt?: number;
  verifiable?: boolean;
  healthy?: boolean;
}

/**
 * A worker of a new release takes over only after it has been ready for {@link CANARY_MS}, with proven
 * threads and a healthy app.
 */
export class Candidates implements Invariant {
  readonly #proofs = new Map<WorkerId, Proof>();
  /** The generations whose threads are known to be fit, or that have no threads. */
  readonly #proven = new Set<number>();
  /** Since when each replacement has been in its phase, in ms of the primary's awake time. */
  #since = new Map<string, number>();

  after(step: Observation): void {
    this.#note(step);
    const { before, state, world } = step;
    for (const candidacy of candidaciesOf(before)) {
      const { slot, candidate } = candidacy;
      const tookOver = state.slots[slot]!.worker === candidate;
      if (tookOver && before.slots[slot]!.worker !== candidate) this.#judge(candidacy, step);
    }
    const { awake } = world.clock;
    const underWay = new Map<string, number>();
    for (const each of replacementsOf(state)) {
      const { phase, slot } = each;
      const who = phase === 'handing-over' ? each.predecessor : each.candidate;
      const key = `${phase} ${slot} ${who}`;
      const since = this.#since.get(key) ?? awake;
      underWay.set(key, since);
      const [lasts, bound] = [awake - since, boundOf(phase, step)];
      hold(`a replacement goes on (${phase})`, lasts <= bound, { lasts, bound, ...each });
    }
    this.#since = underWay;
  }

  #note({ before, state, event, effects, world }: Observation): void {
    for (const effect of effects) {
      if (effect.type !== 'send' || effect.message.type !== 'verify') continue;
      const known = this.#proven.has(state.workers.get(effect.worker)!.generation);
      hold('of each generation it is asked once whether threads are fit', !known, effect);
    }
    if (event.type !== 'worker') return;
    const worker = before.workers.get(event.worker);
    if (worker === undefined) return;
    const proof = this.#proofs.get(worker.id) ?? {};
    this.#proofs.set(worker.id, proof);
    const said = event.event;
    if (said.type === 'ready' && worker.state === 'starting' && !worker.failure) {
      proof.readyAt = world.clock.awake;
      proof.verifiable = said.verifiable ?? false;
      if (!proof.verifiable) this.#proven.add(worker.generation);
    } else if (said.type === 'checked') proof.healthy = said.healthy;
    else if (said.type === 'verified' && worker.state === 'ready' && worker.threads === 'asked') {
      if (said.error === null) this.#proven.add(worker.generation);
    }
  }

  #judge(candidacy: Candidacy, { world, state, before }: Observation): void {
    const { candidate, cause, release } = candidacy;
    const proof = this.#proofs.get(candidate) ?? {};
    const seen = { candidacy, proof };
    hold('a candidate is ready before it takes over', proof.readyAt !== undefined, seen);
    if (cause === 'reload' && before.reload?.outcome === 'completed') {
      const lived = world.clock.awake - proof.readyAt! >= CANARY_MS - 1 - world.earlyMs;
      hold('a candidate of a reload has lived before it takes over', lived, seen);
      hold('a candidate of a reload is well before it takes over', proof.healthy === true, seen);
      const fit = !proof.verifiable || this.#proven.has(release.generation);
      hold('the threads of a reload are proven before it takes over', fit, seen);
    }
    const slot = state.slots[candidacy.slot]!;
    hold('a slot runs the release that took over', slot.release === release, seen);
  }
}

/** The longest time that a phase may last, in ms, with all delays that may be added. */
function boundOf(phase: string, { state, world }: Observation): number {
  const { readyTimeoutMs, shutdown } = world.settings.options;
  const timeless = [...state.workers.values()].some(({ debugged }) => debugged);
  if (timeless || world.scenario.inspected) return Infinity;
  const slackMs = 200 + 300 * world.clock.suspensions + (world.hasFrozen ? EXIT_TIMEOUT_MS : 0);
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = shutdown;
  const leavesMs = lameDuckMs + drainTimeoutMs + killTimeoutMs + 1_500;
  switch (phase) {
    case 'booting':
      return readyTimeoutMs + slackMs;
    case 'canary':
      return CANARY_MS + slackMs;
    // Another worker may be asked first, and leave without an answer.
    case 'verifying':
      return 2 * readyTimeoutMs + leavesMs + slackMs;
    case 'checking':
      return 2_000 + slackMs;
    default:
      return leavesMs + slackMs;
  }
}
