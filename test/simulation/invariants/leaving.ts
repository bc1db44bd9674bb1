import type { Replacement, WorkerId } from '../../../src/supervisor/decide/cluster-state.js';
import type { Effect } from '../../../src/supervisor/decide/effect.js';
import { EXIT_TIMEOUT_MS } from '../../../src/supervisor/decide/step.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';
import { emitted, workerOf } from './telling.js';

/** As long as the primary waits for connections that it has accepted. */
const ACCEPTORS_CLOSE_WITHIN_MS = 5_000;

/** Who is to leave has left in time, and so has the whole cluster. */
export class Leaving implements Invariant {
  /** In the primary's time awake. */
  readonly #since = new Map<WorkerId, number>();
  #begunAt: number | undefined;
  /** Somebody left as it should not have, since the shutdown began. */
  #wentWrong = false;
  #failed: number | undefined;
  /** Workers that were lost, and how many were started for each slot. */
  readonly #lost = new Set<WorkerId>();
  readonly #forks = new Map<number, number>();
  #signals = 0;
  #closed = false;
  /** When the primary began to close its own acceptors, until it has; in its time awake. */
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
      hold('who is to leave has left in time', inTime, () => ({ worker, for: awake - since }));
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
    hold('a shutdown ends within its bound', state.ended || lasts <= boundMs(world), () => lasts);
    const closesFor = awake - (this.#closesSince ?? awake);
    const knows = state.ended || closesFor <= ACCEPTORS_CLOSE_WITHIN_MS;
    hold('the core is told that the acceptors are closed', knows, () => closesFor);
    const { lameDuckMs } = world.settings.options.shutdown;
    const late = lasts > lameDuckMs + 50 + 300 * world.clock.suspensions;
    hold('sockets are closed after the lame duck', this.#closed || !late, () => lasts);
    if (event.type === 'acceptors-closed') {
      this.#closesSince = undefined;
      for (const { id } of state.workers.values()) {
        const told = effects.some(
          (each) => each.type === 'send' && each.worker === id && each.message.type === 'released',
        );
        hold('everybody is told that the primary holds no socket', told, () => id);
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
      hold('a cluster that has served does not give up', !before.everReady, () => failed);
      this.#judgeEnd(step);
    } else hold('a shutdown has a reason', event.type === 'stop', () => event);
    for (const worker of state.workers.values()) {
      hold('a shutdown asks everybody to leave', worker.state === 'draining', () => worker);
    }
    const signal = (event.type === 'stop' && event.signal?.name) || 'SIGTERM';
    for (const each of effects) {
      if (each.type !== 'send' || each.message.type !== 'drain') continue;
      hold('hooks are told the signal', each.message.signal === signal, () => each);
    }
  }

  /** What no restart can help ends a cluster at once; else each slot has its tries, and whoever boots may still serve. */
  #judgeEnd({ event, before, world }: Observation): void {
    if (event.type === 'worker' && ['boot-failed', 'verified'].includes(event.event.type)) return;
    const { replacement, workers, desired } = before;
    const seen = (): unknown => ({ event, lost: [...this.#lost], replacement });
    hold('a cluster gives up after two tries a slot', this.#lost.size >= 2 * desired, seen);
    const gone = workerOf(event);
    for (const { id, slot, state } of workers.values()) {
      if (state !== 'starting' || id === gone || slot >= desired) continue;
      // Its exit is on its way here.
      if (world.processes.get(id)?.state === 'exited') continue;
      hold(
        'a cluster does not give up while a first worker boots',
        this.#forks.get(slot)! > 1,
        seen,
      );
      const isCandidate = replacement !== undefined && candidateOf(replacement) === id;
      hold('a cluster does not give up while a candidate boots', !isCandidate, seen);
    }
  }

  /** Each further signal is answered more harshly. */
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
      hold('a further signal reaches everybody', asked, () => ({ id, signals: this.#signals }));
    }
  }

  #exitCode({ effects }: Observation): void {
    const [end] = effects.filter((each) => each.type === 'end');
    if (end?.type !== 'end') return;
    const { exitCode } = end;
    const seen = (): unknown => ({ exitCode, failed: this.#failed, wrong: this.#wentWrong });
    if (this.#signals > 0) return hold('an exit code tells the last signal', exitCode > 128, seen);
    if (this.#failed !== undefined) {
      return hold('an exit code tells why a cluster gave up', exitCode === this.#failed, seen);
    }
    hold('an exit code tells whether all went well', exitCode === (this.#wentWrong ? 1 : 0), seen);
  }
}

/** Nobody had asked it to go; an app may close itself. */
function lossOf(effect: Effect): WorkerId | undefined {
  if (effect.type !== 'emit') return undefined;
  const { name, event } = effect;
  if (name === 'worker-died' || name === 'worker-failing') return event.worker;
  return name === 'worker-draining' && event.cause === 'signal' ? event.worker : undefined;
}

function candidateOf(replacement: Replacement): WorkerId | undefined {
  return replacement.phase === 'handing-over' ? undefined : replacement.candidate;
}

function boundMs({ settings, clock, hasFrozen }: Observation['world']): number {
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = settings.options.shutdown;
  // A second for a boot that is ended, and what an exit may take on top of what was promised.
  const givenUpMs = hasFrozen ? EXIT_TIMEOUT_MS : 0;
  return lameDuckMs + drainTimeoutMs + killTimeoutMs + 1_700 + 300 * clock.suspensions + givenUpMs;
}
