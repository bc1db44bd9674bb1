import type { ClusterState, Timer, Worker } from '../../../src/decide/cluster-state.js';
import { RECOVERY_MS } from '../../../src/decide/policies/failure.policy.js';
import { keyOf } from '../../../src/decide/step.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';
import { candidaciesOf } from './telling.js';

/** No timer outlives its purpose, and everything with a time limit has a timer. */
export class Timers implements Invariant {
  /** The workers that were sent SIGKILL. The core waits only for their exit. */
  readonly #killed = new Set<number>();
  /** The timers of workers that have come due, by type and worker. */
  readonly #over = new Set<string>();

  after({ before, state, event, effects, world }: Observation): void {
    for (const effect of effects) {
      if (effect.type === 'kill' && effect.signal === 'SIGKILL') this.#killed.add(effect.worker);
    }
    if (event.type === 'due') {
      const isArmed = before.timers.has(keyOf(event.timer));
      hold('no timer comes due that was disarmed', isArmed, event.timer);
    }
    if (event.type === 'due' && 'worker' in event.timer) {
      this.#over.add(`${event.timer.type} ${event.timer.worker}`);
    }
    if (before.timers !== state.timers || effects.length > 0) {
      let same = world.armed.size === state.timers.size;
      for (const key of state.timers.keys()) same &&= world.armed.has(key);
      hold('timers are those of the state', same, {
        armed: [...world.armed.keys()],
        state: [...state.timers.keys()],
      });
    }
    const isSame = before.timers === state.timers && before.slots === state.slots;
    // A pong changes only the ping of its worker, on which no other timer depends.
    if (isSame && event.type === 'worker' && event.event.type === 'pong') return;
    for (const timer of state.timers.values()) {
      hold('no timer outlives its purpose', isNeeded(timer, state), timer);
    }
    for (const worker of state.workers.values()) this.#worker(state, worker, world);
    this.#cluster(state);
  }

  #worker(state: ClusterState, worker: Worker, { settings, clock }: Observation['world']): void {
    const has = (type: string): boolean => state.timers.has(`${type} worker ${worker.id}`);
    const ends = (type: string, holds: boolean): void =>
      hold(`what may last for ever has a timer (${type})`, holds, worker);
    const killed = this.#killed.has(worker.id);
    const leaves = has('exit-overdue') || this.#over.has(`exit-overdue ${worker.id}`);
    switch (worker.state) {
      case 'starting':
        ends('ready-overdue', settings.mayBeDebugged || killed || has('ready-overdue'));
        return ends('exit-overdue', !killed || leaves);
      case 'draining':
        return ends('stop-overdue', leaves || has('stop-overdue'));
      case 'ready': {
        ends('exit-overdue', !killed || leaves);
        if (worker.leaving !== undefined) ends('leave-due', has('leave-due'));
        const recovers = clock.now - worker.readyAt < RECOVERY_MS;
        if (recovers)
          ends('recovered', has('recovered') || this.#over.has(`recovered ${worker.id}`));
        if (worker.threads === 'asked' && !worker.debugged && !killed) {
          ends('verify-overdue', has('verify-overdue'));
        }
      }
    }
  }

  #cluster(state: ClusterState): void {
    const { timers, reload, leadership, previous } = state;
    const isObserved = previous !== undefined;
    hold(
      'a release is observed for a time',
      isObserved === timers.has('observation-over'),
      previous,
    );
    const renews = leadership.lease === undefined || timers.has('lease-due');
    hold('what may last for ever has a timer (lease-due)', renews, leadership);
    for (const each of candidaciesOf(state)) {
      if (each.phase !== 'canary' && each.phase !== 'checking') continue;
      const timer = each.phase === 'canary' ? 'canary-over' : 'check-overdue';
      const has = timers.has(`${timer} worker ${each.candidate}`);
      hold(`what may last for ever has a timer (${timer})`, has, reload);
    }
  }
}

function isNeeded(timer: Timer, state: ClusterState): boolean {
  const { shutdown, desired, workers } = state;
  const candidacies = candidaciesOf(state);
  if (timer.type === 'lame-duck-over') return shutdown !== undefined && !state.ended;
  if (timer.type === 'observation-over') return shutdown === undefined;
  if (timer.type === 'lease-due') return state.leadership.lease !== undefined;
  if (timer.type === 'start-due') {
    const hasCandidate = candidacies.some(({ slot }) => slot === timer.slot);
    const isEmpty = state.slots[timer.slot]!.worker === undefined;
    return shutdown === undefined && timer.slot < desired && isEmpty && !hasCandidate;
  }
  const worker = workers.get(timer.worker);
  if (worker === undefined) return false;
  const phase = candidacies.find(({ candidate }) => candidate === worker.id)?.phase;
  switch (timer.type) {
    case 'ready-overdue':
      return worker.state === 'starting';
    case 'stop-overdue':
      return worker.state === 'draining';
    case 'exit-overdue':
      return true;
    case 'recovered':
      return worker.state === 'ready';
    case 'leave-due':
      return worker.state === 'ready' && worker.leaving !== undefined;
    case 'block-overdue':
      return worker.block !== undefined && worker.state === 'ready';
    case 'canary-over':
      return phase === 'canary';
    case 'check-overdue':
      return phase === 'checking';
    case 'verify-overdue':
      return worker.state === 'ready' && worker.threads === 'asked';
  }
}
