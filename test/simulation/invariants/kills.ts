import type { Worker, WorkerId } from '../../../src/decide/cluster-state.js';
import { keyOf } from '../../../src/decide/step.js';
import { PING_INTERVAL_MS } from '../../../src/decide/worker/liveness.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';

/**
 * A worker is killed only for a reason and once its time is up. If it hangs, it is killed in time.
 */
export class Kills implements Invariant {
  /** When each worker was given a task with a time limit, in ms of the primary's awake time. */
  readonly #asked = new Map<string, number>();
  readonly #killed = new Set<WorkerId>();
  /** Since when workers are blocked, as their watchdogs have reported, in ms of the clock. */
  readonly #blocked = new Map<WorkerId, number>();

  after(step: Observation): void {
    const { effects, event, world, before, state } = step;
    const { awake } = world.clock;
    for (const effect of effects) {
      if (effect.type === 'fork') this.#asked.set(`ready-overdue ${effect.worker}`, awake);
      if (effect.type === 'send' && effect.message.type === 'verify') {
        this.#asked.set(`verify-overdue ${effect.worker}`, awake);
      }
      if (effect.type === 'send' && effect.message.type === 'drain') {
        this.#asked.set(`drain ${effect.worker}`, awake);
      }
      if (effect.type === 'kill' && effect.signal === 'SIGTERM') {
        this.#asked.set(`end ${effect.worker}`, awake);
      }
      if (effect.type === 'emit' && effect.name === 'worker-failing') {
        const key = `drain ${effect.event.worker}`;
        if (!this.#asked.has(key)) this.#asked.set(key, awake);
      }
      if (effect.type === 'kill' && effect.signal === 'SIGKILL') {
        this.#killed.add(effect.worker);
        hold('nobody is killed for nothing', this.#mayBeKilled(effect.worker, step), {
          event: event.type === 'upkeep-due' ? event.type : event,
          worker: before.workers.get(effect.worker),
        });
      }
    }
    if (event.type === 'due' && event.timer.type === 'ready-overdue') {
      const { worker: id } = event.timer;
      if (before.timers.has(keyOf(event.timer)) && before.workers.get(id)?.state === 'starting') {
        hold('who does not come up in time is killed', this.#killed.has(id), event);
      }
    }
    this.#noteBlock(step);
    for (const [id, since] of this.#blocked) {
      hold('who is blocked is killed when its time is up', !this.#isOverdue(id, since, step), {
        since,
        worker: state.workers.get(id),
      });
    }
    if (event.type !== 'heartbeat-due') return;
    for (const worker of state.workers.values()) {
      if (worker.state !== 'ready' || worker.debugged || this.#killed.has(worker.id)) continue;
      hold('who answers no pings is killed in time', !this.#hangsTooLong(worker, step), worker);
    }
  }

  #noteBlock({ event, world }: Observation): void {
    if (event.type !== 'worker') return;
    const { worker, event: said } = event;
    if (said.type === 'blocked') this.#blocked.set(worker, world.clock.now - said.forMs);
    else if (said.type === 'resumed' || said.type === 'exited') this.#blocked.delete(worker);
  }

  /**
   * Whether a worker has not answered its ping for `hangTimeoutMs` since its block began, as reported
   * by its watchdog. A pause of the primary gives all workers a fresh window.
   */
  #isOverdue(id: WorkerId, since: number, { state, world }: Observation): boolean {
    const worker = state.workers.get(id);
    if (worker?.state !== 'ready' || worker.debugged || this.#killed.has(id)) return false;
    const { clock, settings } = world;
    const { hangTimeoutMs } = settings.options;
    const until = since + hangTimeoutMs;
    const owes = worker.ping !== undefined && worker.ping.sentAt < until;
    return owes && clock.now > until + 1 && since > clock.lastResumedAt + 2 * PING_INTERVAL_MS;
  }

  #mayBeKilled(id: WorkerId, { event, state, before, world }: Observation): boolean {
    const { readyTimeoutMs, memory } = world.settings.options;
    const { awake } = world.clock;
    const worker = before.workers.get(id);
    const since = (key: string): number =>
      awake + world.earlyMs - (this.#asked.get(`${key} ${id}`) ?? Infinity);
    if (event.type === 'stop') return state.shutdown?.phase === 'killing';
    if (event.type === 'heartbeat-due') return isSilent(worker, world);
    if (event.type === 'upkeep-due') {
      return (event.readings.get(id)?.residentBytes ?? 0) > memory.hardLimitBytes;
    }
    if (event.type === 'worker') {
      const { type } = event.event;
      const isForeign = type === 'foreign-version' && worker?.state === 'starting';
      return event.worker === id && (type === 'channel-broken' || isForeign);
    }
    if (event.type !== 'due' || !('worker' in event.timer) || event.timer.worker !== id)
      return false;
    const { type } = event.timer;
    if (type === 'block-overdue') return isSilent(worker, world);
    if (type === 'ready-overdue') {
      return worker?.state === 'starting' && since('ready-overdue') >= readyTimeoutMs - 1;
    }
    if (type === 'verify-overdue') return since('verify-overdue') >= readyTimeoutMs - 1;
    if (type !== 'stop-overdue' || worker?.state !== 'draining') return false;
    if (worker.readyAt === undefined) return since('end') >= 999;
    return since('drain') >= patienceMs(world) - 1;
  }

  #hangsTooLong(worker: Worker & { state: 'ready' }, { world }: Observation): boolean {
    const { silentSince } = world.processes.get(worker.id) ?? {};
    if (silentSince === undefined) return false;
    const { hangTimeoutMs } = world.settings.options;
    const since = Math.max(silentSince, world.clock.lastResumedAt, worker.readyAt);
    return world.clock.now - since > hangTimeoutMs + 3 * PING_INTERVAL_MS + 200;
  }
}

/** Whether a worker has not answered for the heartbeat timeout. */
function isSilent(
  worker: Worker | undefined,
  { processes, settings, clock }: Observation['world'],
) {
  if (worker === undefined || worker.state !== 'ready' || worker.debugged) return false;
  const process = processes.get(worker.id);
  // The process has exited, but the primary has not read that yet.
  if (process === undefined || process.state === 'exited') return true;
  const { silentSince, resumedAt, behaviour } = process;
  // Messages that were on their way when the primary was suspended may have arrived later.
  const slackMs = 2 * behaviour.lagMs + 2 + 300 * clock.suspensions;
  // The primary has not read yet that the worker is no longer blocked.
  if (clock.now - resumedAt <= slackMs) return true;
  if (silentSince === undefined) return false;
  return clock.now - silentSince >= settings.options.hangTimeoutMs - slackMs;
}

function patienceMs({ settings }: Observation['world']): number {
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = settings.options.shutdown;
  return lameDuckMs + drainTimeoutMs + killTimeoutMs;
}
