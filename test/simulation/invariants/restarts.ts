import type { WorkerId } from '../../../src/decide/cluster-state.js';
import type { Effect } from '../../../src/decide/effect.js';
import type { Observation } from '../world.js';
import {
  MAX_BACKOFF_MS,
  MAX_FAILURES,
  RECOVERY_MS,
} from '../../../src/decide/policies/failure.policy.js';
import { hold, type Invariant } from './invariant.js';
import { candidaciesOf, workerOf } from './telling.js';

/** Restarts never exceed the rate of the policy. */
export class Restarts implements Invariant {
  /** By slot, the earliest time of its next worker, as `worker-restarting` has reported it. */
  readonly #notBefore = new Map<number, number>();
  /** By slot, the failures by its workers' own fault since the count was last reset. */
  readonly #failures = new Map<number, number>();
  /** The slots whose last failed worker had been ready. */
  readonly #cameUp = new Set<number>();
  readonly #readyAt = new Map<WorkerId, number>();
  /** By slot, the failures in a row since its last stable worker. */
  readonly #rows = new Map<number, number>();
  /** The delayed restarts that were reported within the last `TOGETHER_MS`. */
  #together: { readonly at: number; readonly startAt: number }[] = [];

  after(step: Observation): void {
    const { before, state, event, effects, world } = step;
    const { now } = world.clock;
    if (before.slots !== state.slots) this.#forget(step);
    const failures = newFailures(step);
    if (failures !== 0) this.#counted(step, failures);
    for (const effect of effects) {
      if (effect.type === 'joined') this.#readyAt.set(effect.worker, now);
      if (effect.type !== 'emit' || effect.name !== 'worker-restarting') continue;
      this.#told(step, effect.event);
      this.#notBefore.set(effect.event.slot, now + effect.event.delayMs);
    }
    if (event.type === 'due' && event.timer.type === 'start-due') {
      const due = this.#notBefore.get(event.timer.slot) ?? 0;
      const forked = effects.some(({ type }) => type === 'fork');
      hold('a restart waits as long as it was told', !forked || now >= due - 1, { now, due });
    }
    // A slot that gets a worker in any way no longer waits.
    for (const effect of effects) if (effect.type === 'fork') this.#notBefore.delete(effect.slot);
  }

  #forget({ before, state }: Observation): void {
    for (const { index, failures, release } of before.slots) {
      const after = state.slots[index]!;
      // The failures of another release do not count for this one.
      const tookOver = candidaciesOf(before).some(
        ({ cause, candidate }) => cause === 'reload' && candidate === after.worker,
      );
      const isReloaded = (after.release !== release || tookOver) && index < before.desired;
      if (isReloaded) this.#rows.delete(index);
      if (isReloaded || (failures.shortLives > 0 && after.failures.shortLives === 0)) {
        this.#failures.delete(index);
      }
    }
  }

  #told(step: Observation, told: Told): void {
    const { slot, delayMs, failures, degraded } = told;
    const longest = this.#cameUp.has(slot) ? QUICK_START_MS : MAX_BACKOFF_MS;
    const backoff = Math.min(BACKOFF_MS * 2 ** (failures - 1), longest);
    const least = failures > 0 ? backoff : 0;
    const spread = 1 - 0.2;
    const fits = delayMs >= least * spread - 1 && delayMs <= longest;
    hold('a restart waits as long as its failures call for', fits, told);
    const count = this.#failures.get(slot) ?? 0;
    const loops = count >= MAX_FAILURES;
    hold('a crash loop is known for one', degraded === loops, { told, count });
    const row = this.#rows.get(slot) ?? 0;
    hold('failures in a row are counted', failures === row, { told, row });
    this.#apart(told, longest, step.world);
  }

  /** Slots that fail at the same time by a shared cause do not restart at the same time. */
  #apart(told: Told, longest: number, { clock: { now } }: Observation['world']): void {
    const { failures, delayMs } = told;
    this.#together = this.#together.filter(({ at }) => now - at < TOGETHER_MS);
    const seen = { told, now, together: this.#together };
    if (failures === 0) return hold('who lived well is replaced at once', delayMs === 0, seen);
    const isSame = this.#together.some(({ startAt }) => startAt === now + delayMs);
    hold('restarts do not come in one moment', !isSame || delayMs >= longest, seen);
    this.#together.push({ at: now, startAt: now + delayMs });
  }

  /** Checks that a step counts only one failure, and updates this class's own counts. */
  #counted({ before, effects, event, world }: Observation, failures: number): void {
    hold('failures are counted one by one', failures === 1, { event, failures });
    const failed = effects.find(isFailure);
    const { slot, startedByProcess, cause } = failureOf(failed, before, event);
    if (slot === undefined) return;
    const readyAt = this.#readyAt.get(workerOf(event) ?? -1);
    if (readyAt === undefined) this.#cameUp.delete(slot);
    else this.#cameUp.add(slot);
    const livedMs = readyAt === undefined ? -1 : world.clock.now - readyAt;
    const isStable = livedMs >= STABLE_AFTER_MS;
    this.#rows.set(slot, isStable ? 0 : (this.#rows.get(slot) ?? 0) + 1);
    if (cause === 'killed' || !startedByProcess) return;
    const count = livedMs >= RECOVERY_MS ? 0 : (this.#failures.get(slot) ?? 0);
    this.#failures.set(slot, count + 1);
  }
}

/** The wait after a first failure. */
const BACKOFF_MS = 100;

/** A worker that lived this long is restarted at once. */
const STABLE_AFTER_MS = 30_000;

/** The longest wait of a slot whose last worker had been ready, even after many failures. */
const QUICK_START_MS = 1_000;

/** Restarts within this time count as simultaneous. */
const TOGETHER_MS = 1_000;

type Told = Extract<Effect, { type: 'emit'; name: 'worker-restarting' }>['event'];

function isFailure(effect: Effect): boolean {
  return (
    effect.type === 'emit' && (effect.name === 'worker-died' || effect.name === 'worker-failing')
  );
}

function failureOf(
  effect: Effect | undefined,
  { workers }: Observation['before'],
  event: Observation['event'],
): { slot: number | undefined; startedByProcess: boolean; cause: string | undefined } {
  const id = workerOf(event);
  const slot = id === undefined ? undefined : workers.get(id)?.slot;
  const exit =
    event.type === 'worker' && event.event.type === 'exited' ? event.event.exit : undefined;
  const startedByProcess = exit === undefined || exit.code !== null || exit.signal !== null;
  const cause =
    effect?.type === 'emit' && effect.name === 'worker-died' ? effect.event.cause : 'crash';
  return { slot, startedByProcess, cause };
}

/**
 * The restarts that a step has counted, except for the replacement of a worker for its memory. If
 * that worker failed before its replacement took over, its failure was the restart.
 */
function newFailures({ before, state }: Observation): number {
  if (before.slots === state.slots) return 0;
  const tookOver = candidaciesOf(before).some(
    ({ cause, slot, candidate }) =>
      cause === 'memory' &&
      state.slots[slot]!.worker === candidate &&
      isServing(before, before.slots[slot]!.worker),
  );
  return sumOfRestarts(state) - sumOfRestarts(before) - (tookOver ? 1 : 0);
}

function isServing({ workers }: Observation['before'], id: WorkerId | undefined): boolean {
  const worker = id === undefined ? undefined : workers.get(id);
  return worker !== undefined && worker.state !== 'draining';
}

function sumOfRestarts({ slots }: Observation['state']): number {
  let sum = 0;
  for (const { restarts } of slots) for (const count of Object.values(restarts)) sum += count;
  return sum;
}
