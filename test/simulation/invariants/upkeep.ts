import {
  type ClusterState,
  type ReadyWorker,
  type ReplacementRequest,
  replacementsOf,
  type WorkerId,
} from '../../../src/decide/cluster-state.js';
import { MAX_BACKOFF_MS } from '../../../src/decide/policies/failure.policy.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';
import { candidaciesOf } from './telling.js';

type Request = Pick<ReplacementRequest, 'slot' | 'cause' | 'detail'>;

/** A worker is replaced or killed if it is too large or has served long enough, and only then. */
export class Upkeep implements Invariant {
  /** By slot, when a replacement for memory or recycling last failed. */
  readonly #failedAt = new Map<number, number>();
  readonly #killed = new Set<WorkerId>();
  /** When each worker became ready that was already above the soft limit. */
  readonly #largeAtStart = new Map<WorkerId, number>();
  /** By slot, until when its worker may stay, because a new worker failed or would be as large. */
  readonly #mayStay = new Map<number, number>();

  after(step: Observation): void {
    const { before, state, event, effects, world } = step;
    const { now } = world.clock;
    for (const effect of effects) {
      if (effect.type === 'kill' && effect.signal === 'SIGKILL') this.#killed.add(effect.worker);
    }
    if (state.shutdown !== undefined) return;
    if (event.type === 'worker' && event.event.type === 'ready') {
      const tooLarge = event.event.residentBytes > world.settings.options.memory.softLimitBytes;
      if (tooLarge) this.#largeAtStart.set(event.worker, now);
      const slot = before.workers.get(event.worker)?.slot;
      if (tooLarge && slot !== undefined) this.#mayStay.set(slot, now + MAX_BACKOFF_MS);
    }
    for (const { slot, candidate } of candidaciesOf(before).filter(isUpkeep)) {
      const isOver = candidaciesOf(state).every((each) => each.candidate !== candidate);
      const failed = isOver && state.slots[slot]!.worker !== candidate && slot < state.desired;
      if (failed) {
        this.#failedAt.set(slot, now);
        this.#mayStay.set(slot, now + MAX_BACKOFF_MS);
      }
    }
    const restarts = requestsOf(state).filter(({ cause }) => cause === 'restart');
    const restarting = new Set(restarts.map(({ slot }) => slot));
    hold('a slot waits for one restart', restarts.length === restarting.size, restarts);
    for (const { slot, cause, detail } of requestsOf(state)) {
      if (
        !isUpkeep({ cause }) ||
        requestsOf(before).some((each) => isSame(each, { slot, cause, detail }))
      ) {
        continue;
      }
      const since = now - (this.#failedAt.get(slot) ?? -Infinity);
      hold('a replacement that failed is not tried at once', since >= MAX_BACKOFF_MS, {
        slot,
        since,
      });
      const worker = before.workers.get(before.slots[slot]!.worker ?? -1);
      const same = requestsOf(state).filter(
        (each) => each.slot === slot && each.cause !== 'reload',
      );
      hold('a slot waits for one replacement', same.length === 1, same);
      if (cause === 'memory' && worker !== undefined && this.#largeAtStart.has(worker.id)) {
        const livedMs = now - this.#largeAtStart.get(worker.id)!;
        hold(
          'who is too large from the start is replaced now and then',
          livedMs >= MAX_BACKOFF_MS,
          worker,
        );
      }
      hold('who is replaced serves', worker?.state === 'ready' && !this.#killed.has(worker.id), {
        slot,
        worker,
      });
    }
    if (event.type === 'upkeep-due') this.#looked(step);
  }

  #looked({ before, state, event, effects, world }: Observation): void {
    if (event.type !== 'upkeep-due') return;
    const { memory, recycle } = world.settings.options;
    for (const worker of before.workers.values()) {
      const mayWait = world.clock.now < (this.#mayStay.get(worker.slot) ?? 0);
      const reading = event.readings.get(worker.id);
      // The process has exited, but the primary has not read that yet.
      if (reading === undefined) continue;
      const { residentBytes, requests } = reading;
      if (residentBytes > memory.hardLimitBytes) {
        const killed = effects.some((each) => each.type === 'kill' && each.worker === worker.id);
        hold('who is above the hard limit is killed', killed, worker);
        continue;
      }
      if (!isServing(worker, before) || this.#killed.has(worker.id)) continue;
      if (requestsOf(before).some(({ slot }) => slot === worker.slot)) continue;
      const [request] = requestsOf(state).filter(({ slot }) => slot === worker.slot);
      const seen = { worker, residentBytes, requests, request };
      if (residentBytes > memory.softLimitBytes) {
        hold(
          'who is above the soft limit is replaced',
          mayWait || request?.cause === 'memory',
          seen,
        );
        continue;
      }
      const ageMs = world.clock.now - worker.startedAt;
      const [low, high] = [0.9, 1.1];
      const surely = requests >= recycle.maxRequests * high || ageMs >= recycle.maxAgeMs * high;
      const maybe = requests >= recycle.maxRequests * low || ageMs >= recycle.maxAgeMs * low;
      hold(
        'who has served long enough is replaced',
        !surely || mayWait || request !== undefined,
        seen,
      );
      hold('who has not served long enough stays', maybe || request === undefined, seen);
    }
  }
}

function isSame(a: Request, b: Request): boolean {
  return a.slot === b.slot && a.cause === b.cause && a.detail === b.detail;
}

function isServing(
  { state, slot, id }: { state: string; slot: number; id: WorkerId },
  { slots }: ClusterState,
): boolean {
  return state === ('ready' satisfies ReadyWorker['state']) && slots[slot]!.worker === id;
}

function requestsOf(state: ClusterState) {
  return [...replacementsOf(state), ...state.replacementsWaiting];
}

/** Whether the core replaces the worker without a request of the worker or an operator. */
function isUpkeep({ cause }: Pick<ReplacementRequest, 'cause'>): boolean {
  return cause === 'memory' || cause === 'recycle';
}
