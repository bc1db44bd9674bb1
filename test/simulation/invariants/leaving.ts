import type { WorkerId } from '../../../src/decide/cluster-state.js';
import type { Effect } from '../../../src/decide/effect.js';
import { EXIT_TIMEOUT_MS } from '../../../src/decide/step.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';
import { candidaciesOf, emitted, workerOf } from './telling.js';

/** How long the primary waits for connections that its own acceptors have accepted. */
const ACCEPTORS_CLOSE_WITHIN_MS = 5_000;

/** A worker that is asked to leave leaves in time, and a shutdown ends in time. */
export class Leaving implements Invariant {
  /** Since when each worker drains, in ms of the primary's awake time. */
  readonly #since = new Map<WorkerId, number>();
  #begunAt: number | undefined;
  /** Whether a worker has stopped with a problem since the shutdown began. */
  #wentWrong = false;
  #failed: number | undefined;
  /** The workers that ended without being asked to. */
  readonly #lost = new Set<WorkerId>();
  /** By slot, how many workers were forked for it. */
  readonly #forks = new Map<number, number>();
  #signals = 0;
  #closed = false;
  /** Since when the primary closes its own acceptors, in ms of its awake time. */
  #closesSince: number | undefined;

  after(step: Observation): void {
    const { state, before, effects, event, world } = step;
    const { awake } = world.clock;
    for (const effect of effects) {
      if (effect.type === 'fork') {
        this.#forks.set(effect.slot, (this.#forks.get(effect.slot) ?? 0) + 1);
      }
      const lost = lossOf(effect);
      if (lost !== undefined) this.#lost.add(lost);
    }
    for (const worker of state.workers.values()) {
      if (worker.state !== 'draining') continue;
      const since = this.#since.get(worker.id) ?? awake;
      this.#since.set(worker.id, since);
      const inTime = awake - since <= boundMs(world);
      hold('who is to leave has left in time', inTime, { worker, for: awake - since });
    }
    if (state.shutdown === undefined) return;
    if (before.shutdown === undefined) this.#begin(step);
    for (const effect of effects) {
      if (effect.type === 'close-sockets') this.#closed = true;
      if (effect.type === 'close-acceptors') this.#closesSince = awake;
      if (effect.type !== 'emit' || effect.name !== 'worker-stopped') continue;
      if (effect.event.problem !== null) this.#wentWrong = true;
    }
    this.#impatience(step);
    const lasts = awake - this.#begunAt!;
    hold('a shutdown ends within its bound', state.ended || lasts <= boundMs(world), lasts);
    const closesFor = awake - (this.#closesSince ?? awake);
    const knows = state.ended || closesFor <= ACCEPTORS_CLOSE_WITHIN_MS;
    hold('the core is told that the acceptors are closed', knows, closesFor);
    const { lameDuckMs } = world.settings.options.shutdown;
    const late = lasts > lameDuckMs + 50 + 300 * world.clock.suspensions;
    hold('sockets are closed after the lame duck', this.#closed || !late, lasts);
    if (event.type === 'acceptors-closed') {
      this.#closesSince = undefined;
      for (const { id } of state.workers.values()) {
        const told = effects.some(
          (each) => each.type === 'send' && each.worker === id && each.message.type === 'released',
        );
        hold('everybody is told that the primary holds no socket', told, id);
      }
    }
    const end = effects.filter(({ type }) => type === 'end');
    if (end.length === 0) return;
    hold(
      'a cluster ends once, without workers',
      end.length === 1 && !before.ended && state.workers.size === 0,
    );
    this.#exitCode(step);
  }

  atRest({ state, world }: Pick<Observation, 'state' | 'world'>): void {
    if (state.shutdown === undefined) return;
    hold('a shutdown ends', world.ended !== undefined && state.ended);
  }

  #begin(step: Observation): void {
    const { event, effects, world, before, state } = step;
    this.#begunAt = world.clock.awake;
    const failed = effects.find((each) => each.type === 'emit' && each.name === 'failed');
    if (failed?.type === 'emit' && failed.name === 'failed') {
      this.#failed = failed.event.exitCode;
      hold('a cluster that has served does not give up', !before.everReady, failed);
      this.#judgeEnd(step);
    } else hold('a shutdown has a reason', event.type === 'stop', event);
    for (const worker of state.workers.values()) {
      hold('a shutdown asks everybody to leave', worker.state === 'draining', worker);
    }
    const signal = (event.type === 'stop' && event.signal?.name) || 'SIGTERM';
    for (const each of effects) {
      if (each.type !== 'send' || each.message.type !== 'drain') continue;
      hold('hooks are told the signal', each.message.signal === signal, each);
    }
  }

  /**
   * A cluster gives up at once if a restart cannot help. Otherwise it first tries two workers for
   * each slot, and waits for the workers that are still booting.
   */
  #judgeEnd({ event, before, world }: Observation): void {
    if (event.type === 'worker' && ['boot-failed', 'verified'].includes(event.event.type)) return;
    const { slots, workers, desired } = before;
    const seen = { event, lost: [...this.#lost], slots };
    hold('a cluster gives up after two tries a slot', this.#lost.size >= 2 * desired, seen);
    const gone = workerOf(event);
    for (const { id, slot, state } of workers.values()) {
      if (state !== 'starting' || id === gone || slot >= desired) continue;
      // The process has exited, but the primary has not read that yet.
      if (world.processes.get(id)?.state === 'exited') continue;
      hold(
        'a cluster does not give up while a first worker boots',
        this.#forks.get(slot)! > 1,
        seen,
      );
      const isCandidate = candidaciesOf(before).some(({ candidate }) => candidate === id);
      hold('a cluster does not give up while a candidate boots', !isCandidate, seen);
    }
  }

  /** During a shutdown, the first signal forces the workers to end. Each further one kills them. */
  #impatience({ before, event, effects, state }: Observation): void {
    if (before.shutdown === undefined || event.type !== 'stop') return;
    const told = emitted(effects, 'stopping').length;
    if (event.signal === undefined) return hold('a call is not impatient', told === 0);
    this.#signals += 1;
    hold('each signal is told', told === 1);
    if (before.workers.size !== state.workers.size) return;
    for (const { id } of state.workers.values()) {
      const asked = effects.some((each) =>
        this.#signals === 1
          ? each.type === 'force' && each.worker === id
          : each.type === 'kill' && each.signal === 'SIGKILL' && each.worker === id,
      );
      hold('a further signal reaches everybody', asked, { id, signals: this.#signals });
    }
  }

  #exitCode({ effects }: Observation): void {
    const [end] = effects.filter((each) => each.type === 'end');
    if (end?.type !== 'end') return;
    const { exitCode } = end;
    const seen = { exitCode, failed: this.#failed, wrong: this.#wentWrong };
    if (this.#signals > 0) return hold('an exit code tells the last signal', exitCode > 128, seen);
    if (this.#failed !== undefined) {
      return hold('an exit code tells why a cluster gave up', exitCode === this.#failed, seen);
    }
    hold('an exit code tells whether all went well', exitCode === (this.#wentWrong ? 1 : 0), seen);
  }
}

/** The worker that ended without being asked to, e.g. because its app closed itself. */
function lossOf(effect: Effect): WorkerId | undefined {
  if (effect.type !== 'emit') return undefined;
  const { name, event } = effect;
  if (name === 'worker-died' || name === 'worker-failing') return event.worker;
  return name === 'worker-draining' && event.cause === 'signal' ? event.worker : undefined;
}

function boundMs({ settings, clock, hasFrozen }: Observation['world']): number {
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = settings.options.shutdown;
  // 1,700 ms: a second for a worker that is ended during its boot, and a margin for the exit.
  const givenUpMs = hasFrozen ? EXIT_TIMEOUT_MS : 0;
  return lameDuckMs + drainTimeoutMs + killTimeoutMs + 1_700 + 300 * clock.suspensions + givenUpMs;
}
