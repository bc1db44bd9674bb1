import type { ClusterState, ReadyWorker, WorkerId } from '../../../src/decide/cluster-state.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';

/** The longest time that a lease may last. */
const LEASE_MS = 900;

/** How long a worker may be blocked between the check of its lease and the run of a job. */
const MARGIN_MS = 100;

/** At most one worker leads at any time. If a worker can lead, one does. */
export class Leading implements Invariant {
  /** The number of the last lease, if it was not answered. */
  #unanswered: number | undefined;
  /** The worker that led last, and the last time at which it may have run a job. */
  #last: { readonly worker: WorkerId; at: number } | undefined;
  /** The last lease of a worker that has neither resigned nor exited. */
  #granted: { readonly worker: WorkerId; readonly until: number } | undefined;

  after({ before, state, event, effects, world }: Observation): void {
    const { now } = world.clock;
    const leaders = [...world.processes.values()].filter(
      (process) => process.state !== 'exited' && process.leads,
    );
    hold(
      'two workers never lead at once',
      leaders.length <= 1,
      leaders.map(({ id }) => id),
    );
    const [leader] = leaders;
    if (leader !== undefined) this.#last = { worker: leader.id, at: now };

    const { leader: appointed } = state.leadership;
    const isAppointed = appointed !== undefined && appointed !== before.leadership.leader;
    if (event.type === 'worker' && ['resigned', 'exited'].includes(event.event.type)) {
      if (event.worker === this.#granted?.worker) this.#granted = undefined;
    }
    if (isAppointed && this.#granted !== undefined && this.#granted.worker !== appointed) {
      const isOver = now >= this.#granted.until + MARGIN_MS;
      hold('a leader comes once the lease before it and its margin are over', isOver, {
        now,
        granted: this.#granted,
      });
    }

    if (event.type === 'worker' && event.event.type === 'leads') {
      if (event.event.seq === this.#unanswered) this.#unanswered = undefined;
      const lapsed = state.workers.get(event.worker)?.lapsed ?? false;
      hold('who answers is not blocked', !lapsed || !isReady(before, event.worker), event);
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
        hold('a leader leaves to those before it what they may have run', since >= at, at);
        hold('and nothing that is still to come', since <= now, message);
      }
    }
    this.#hasLeader(state, now);
    if (isAppointed) {
      const first = Math.min(...candidates(state).map(({ readyAt }) => readyAt));
      const { readyAt } = state.workers.get(appointed) as ReadyWorker;
      hold('the leader is the one that has been ready longest', readyAt === first, appointed);
    }
  }

  atRest({ state, world }: Pick<Observation, 'state' | 'world'>): void {
    if (state.shutdown !== undefined) return;
    // If workers answer late or never, the role changes from one to the next again and again.
    const prompt = [...world.processes.values()].every(
      ({ behaviour, silentSince }) =>
        !['late', 'never'].includes(behaviour.pong) && silentSince === undefined,
    );
    if (!prompt || !world.scenario.hasJobs) return;
    const { leader, lease } = state.leadership;
    hold('a cluster at rest has a leader', leader !== undefined);
    // The leader may just have become ready, so that it has not asked for a lease yet.
    const asked = state.workers.get(leader!)?.follows;
    hold('the leader of a cluster at rest has a lease', !asked || lease?.worker === leader);
  }

  #hasLeader(state: ClusterState, now: number): void {
    const { leader, lease } = state.leadership;
    const ready = candidates(state);
    const leads = ready.some(({ id }) => id === leader);
    const waits = lease !== undefined && lease.until + MARGIN_MS + LATE_MS > now;
    hold('where a worker can lead, one does', ready.length === 0 || leads || waits, ready);
    const asked = ready.find(({ id }) => id === leader)?.follows;
    hold('who leads and has asked has a lease', !asked || lease?.worker === leader, lease);
  }
}

function isReady({ workers }: ClusterState, id: WorkerId): boolean {
  return workers.get(id)?.state === 'ready';
}

/** A suspended primary may notice the end of a lease this late. */
const LATE_MS = 20_000;

function candidates({ workers }: ClusterState) {
  return [...workers.values()].filter(
    (each): each is ReadyWorker => each.state === 'ready' && !each.lapsed,
  );
}
