import type { ClusterEvent, WorkerEvent } from '../../src/decide/input.js';
import type { ClusterState, Requester, Timer, WorkerId } from '../../src/decide/cluster-state.js';
import type { Effect } from '../../src/decide/effect.js';
import { PING_INTERVAL_MS } from '../../src/decide/worker/liveness.js';
import { keyOf } from '../../src/decide/step.js';
import { newCluster, transition } from '../../src/decide/transition.js';
import type { Due } from './clock.js';
import { type Primary, RELEASE, type SIGINT, type World } from './world.js';

/** A primary that consists only of the core. Every effect is carried out without a fault. */
export class CorePrimary implements Primary {
  readonly earlyMs = 0;
  state: ClusterState;
  readonly #dues = new Map<string, Due>();
  readonly #posted: ClusterEvent[] = [];
  #handling = false;

  constructor(private readonly world: World) {
    const { workers, seed } = world.scenario;
    this.state = newCluster(workers, RELEASE, 0, seed);
  }

  begin(): void {
    this.#post({ type: 'begin' });
    this.#beatEvery(PING_INTERVAL_MS);
  }

  stop(signal: typeof SIGINT | undefined): void {
    this.#post({ type: 'stop', reason: 'test', signal });
  }

  reload(requester: Requester): void {
    this.#post({ type: 'reload', reason: 'test', requester });
  }

  scale(workers: number, requester: Requester): void {
    const error = this.world.refuses ? new Error('no address') : undefined;
    this.#post({ type: 'scale', workers, reason: 'test', requester, error });
  }

  restart(slot: number, requester: Requester): void {
    this.#post({ type: 'restart', slot, reason: 'test', requester });
  }

  hear(worker: WorkerId, event: WorkerEvent): void {
    this.#post({ type: 'worker', worker, event });
  }

  settle(): void {} // every step was checked at once

  #post(event: ClusterEvent): void {
    this.#posted.push(event);
    if (this.#handling) return;
    this.#handling = true;
    for (let next = this.#posted.shift(); next; next = this.#posted.shift()) this.#handle(next);
    this.#handling = false;
  }

  #handle(event: ClusterEvent): void {
    const { world, state: before } = this;
    const result = transition(before, event, world.clock.now, world.settings);
    this.state = result.state;
    for (const effect of result.effects) this.#perform(effect);
    world.check({ ...result, before, event, world });
  }

  #perform(effect: Effect): void {
    const { world } = this;
    switch (effect.type) {
      case 'fork':
        return world.fork(effect.worker, effect.release.script).start();
      case 'send':
        return world.processes.get(effect.worker)?.receive(effect.message);
      case 'force':
        return world.processes.get(effect.worker)?.receive({ type: 'force' });
      case 'kill':
        return world.processes.get(effect.worker)?.signal(effect.signal);
      case 'abandon': {
        const exit = { code: null, signal: 'SIGKILL' } as const;
        return void world.clock.in(0, () => {
          world.buried(effect.worker);
          this.hear(effect.worker, { type: 'exited', exit, oomKill: false, at: '' });
        });
      }
      case 'arm':
        return this.#arm(effect.timer, effect.ms);
      case 'disarm':
        return this.#disarm(keyOf(effect.timer));
      case 'find-program':
        return this.#post({ type: 'program-found', program: world.find(effect.earlier) });
      case 'close-acceptors':
        return void world.clock.in(0, () => this.#post({ type: 'acceptors-closed' }));
      case 'answer':
      case 'emit':
      case 'end':
      case 'joined':
      case 'gone':
      case 'serving':
      case 'close-sockets':
        return; // `world.check()` records them, or the simulated processes do not need them
    }
  }

  #arm(timer: Timer, ms: number): void {
    const key = keyOf(timer);
    this.#disarm(key);
    const fire = (): void => {
      this.#dues.delete(key);
      this.#post({ type: 'due', timer });
    };
    const kind = 'worker' in timer ? 'deadline' : 'timer';
    this.#dues.set(key, this.world.clock.in(ms, fire, kind));
  }

  #disarm(key: string): void {
    const due = this.#dues.get(key);
    if (due !== undefined) due.cancelled = true;
    this.#dues.delete(key);
  }

  #beatEvery(ms: number): void {
    const { scenario, clock } = this.world;
    const beat = (): void => {
      this.#post({ type: 'heartbeat-due', eventLoopUtilization: 0.1 });
      if (scenario.options.memory || scenario.options.recycle) this.#look();
      clock.in(ms, beat, 'timer');
    };
    clock.in(ms, beat, 'timer');
  }

  #look(): void {
    const readings = new Map<WorkerId, { residentBytes: number; requests: number }>();
    for (const { id, state, residentBytes, requests } of this.world.processes.values()) {
      if (state !== 'exited') readings.set(id, { residentBytes, requests });
    }
    this.#post({ type: 'upkeep-due', readings });
  }
}
