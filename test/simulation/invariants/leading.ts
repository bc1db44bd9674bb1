import type {
  ClusterState,
  ReadyWorker,
  WorkerId,
} from '../../../src/supervisor/decide/cluster-state.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';

/** How long a lease lasts at most, and how long a worker may be held up between its look at it and the run. */
const LEASE_MS = 900;
const MARGIN_MS = 100;

/** One worker at most may run what one alone is to run; and where one can, one does. */
export class Leading implements Invariant {
  /** Leases that were not answered. */
  #unanswered: number | undefined;
  /** Who may have run something last, and until when. */
  #last: { readonly worker: WorkerId; at: number } | undefined;
  /** The last lease of a worker that has neither resigned nor exited. */
  #granted: { readonly worker: WorkerId; readonly until: number } | undefined;

  after({ before, state, event, effects, world }: Observation): void {
    const { now } = world.clock;
    const leaders = [...world.processes.values()].filter(
      (process) => process.state !== 'exited' && process.leads,
    );
    hold('two workers never lead at once', leaders.length <= 1, () => leaders.map(({ id }) => id));
    const [leader] = leaders;
    if (leader !== undefined) this.#last = { worker: leader.id, at: now };

    const { leader: appointed } = state.leadership;
    const isAppointed = appointed !== undefined && appointed !== before.leadership.leader;
    if (event.type === 'worker' && ['resigned', 'exited'].includes(event.event.type)) {
      if (event.worker === this.#granted?.worker) this.#granted = undefined;
    }
    if (isAppointed && this.#granted !== undefined && this.#granted.worker !== appointed) {
      const isOver = now >= this.#granted.until + MARGIN_MS;
      hold('a leader comes once the lease before it and its margin are over', isOver, () => ({
        now,
        granted: this.#granted,
      }));
    }

    if (event.type === 'worker' && event.event.type === 'leads') {
      if (event.event.seq === this.#unanswered) this.#unanswered = undefined;
      const lapsed = state.workers.get(event.worker)?.lapsed ?? false;
      hold('who answers is not blocked', !lapsed || !isReady(before, event.worker), () => event);
    }
    for (const effect of effects) {
      if (effect.type !== 'send' || effect.message.type !== 'lead') continue;
      const { worker, message } = effect;
      const isNew = before.leadership.lease?.worker !== worker;
      hold('a lease that was not answered is not renewed', isNew || this.#unanswered === undefined);
      this.#unanswered = message.seq;
      this.#granted = { worker, until: message.until };
      hold('a lease is short', message.until <= now + LEASE_MS);
      if (this.#last !== undefined && this.#last.worker !== worker) {
        const { at } = this.#last;
        const since = message.since ?? -Infinity;
        hold('a leader leaves to those before it what they may have run', since >= at, () => at);
        hold('and nothing that is still to come', since <= now, () => message);
      }
    }
    this.#hasLeader(state, now);
    if (isAppointed) {
      const first = Math.min(...candidates(state).map(({ readyAt }) => readyAt));
      const { readyAt } = state.workers.get(appointed) as ReadyWorker;
      hold('the leader is the one that has been ready longest', readyAt === first, () => appointed);
    }
  }

  atRest({ state, world }: Pick<Observation, 'state' | 'world'>): void {
    if (state.shutdown !== undefined) return;
    // Whoever answers late or never has the role in turns.
    const prompt = [...world.processes.values()].every(
      ({ behaviour, silentSince }) =>
        !['late', 'never'].includes(behaviour.pong) && silentSince === undefined,
    );
    if (!prompt || !world.scenario.hasJobs) return;
    const { leader, lease } = state.leadership;
    hold('a cluster at rest has a leader', leader !== undefined);
    // It may have become ready at the very end, and have yet to ask.
    const asked = state.workers.get(leader!)?.follows;
    hold('the leader of a cluster at rest has a lease', !asked || lease?.worker === leader);
  }

  #hasLeader(state: ClusterState, now: number): void {
    const { leader, lease } = state.leadership;
    const ready = candidates(state);
    const leads = ready.some(({ id }) => id === leader);
    const waits = lease !== undefined && lease.until + MARGIN_MS + LATE_MS > now;
    hold('where a worker can lead, one does', ready.length === 0 || leads || waits, () => ready);
    const asked = ready.find(({ id }) => id === leader)?.follows;
    hold('who leads and has asked has a lease', !asked || lease?.worker === leader, () => lease);
  }
}

function isReady({ workers }: ClusterState, id: WorkerId): boolean {
  return workers.get(id)?.state === 'ready';
}

/** A primary that stands still sees later that a lease is over. */
const LATE_MS = 20_000;

function candidates({ workers }: ClusterState) {
  return workers
    .values()
    .filter((each): each is ReadyWorker => each.state === 'ready' && !each.lapsed);
}
