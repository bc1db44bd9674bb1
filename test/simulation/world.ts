import type { PrimaryMessage } from '../../src/contract/ipc/index.js';
import type { ClusterEvent, WorkerEvent } from '../../src/supervisor/decide/cluster-event.js';
import type {
  Asker,
  ClusterState,
  Timer,
  WorkerId,
} from '../../src/supervisor/decide/cluster-state.js';
import type { Effect } from '../../src/supervisor/decide/effect.js';
import { keyOf, type Settings } from '../../src/supervisor/decide/step.js';
import { newCluster, type Transition, transition } from '../../src/supervisor/decide/transition.js';
import type { ProgramPaths } from '../../src/supervisor/processes/release.js';
import { Clock, type Due } from './clock.js';
import { SimulatedProcess, type Surface } from './process.js';
import {
  type Behaviour,
  type Deed,
  type Deployment,
  type Scenario,
  WELL,
  WELL_DEPLOYED,
} from './scenario.js';
import { settingsOf } from './settings.js';

/** What a transition came from and led to, for whoever checks or tells it. */
export interface Observation extends Transition {
  readonly before: ClusterState;
  readonly event: ClusterEvent;
  readonly world: World;
}

/** A machine with its own clock, whose processes do what a scenario says, and the real core. */
export class World implements Surface {
  readonly clock = new Clock();
  state: ClusterState;
  readonly settings: Settings;
  events = 0;
  readonly processes = new Map<WorkerId, SimulatedProcess>();
  /** Timers as the effects have left them. */
  readonly armed = new Map<string, { readonly timer: Timer; readonly due: Due }>();
  readonly asked = new Set<string>();
  readonly answered = new Map<string, number>();
  ended: number | undefined;
  healed = false;
  /** There was a process that SIGKILL did not end. */
  hasFrozen = false;
  #refuses = false;
  /** What a reload finds. */
  #program: ProgramPaths | Error = RELEASE;
  /** Where each program is that was deployed, the newest last, and when its workers end. */
  readonly #deployed = new Map<string, { diesMs: number; isThere: boolean }>([
    [RELEASE.script, { diesMs: 0, isThere: true }],
  ]);
  readonly #posted: ClusterEvent[] = [];
  #handling = false;

  constructor(
    readonly scenario: Scenario,
    private readonly observe: (observation: Observation) => void,
  ) {
    this.settings = settingsOf(scenario);
    this.state = newCluster(scenario.workers, RELEASE, 0, scenario.seed);
  }

  begin(): void {
    this.post({ type: 'begin' });
    this.#beatEvery(this.settings.options.heartbeat.intervalMs);
    let at = 0;
    for (const { afterMs, deed } of this.scenario.deeds) {
      at += afterMs;
      this.clock.at(at, () => this.#do(deed));
    }
    at = 0;
    for (const { afterMs, bySignal } of this.scenario.stops) {
      at += afterMs;
      this.clock.at(at, () => {
        if (!this.healed) this.stop(bySignal ? SIGINT : undefined);
      });
    }
  }

  /** Lets time pass. */
  run(forMs: number): void {
    this.clock.run(this.clock.now + forMs, () => this.ended === undefined);
  }

  /** No fault happens any more: what has begun goes its way, what is forked from now on is well. */
  heal(): void {
    this.healed = true;
    for (const process of this.processes.values()) process.heal(this.scenario.inspected);
  }

  /** Nothing is under way, and every worker serves that should. */
  get atRest(): boolean {
    const { slots, desired, workers, reload, replacement, shutdown } = this.state;
    const { replacementsWaiting, reloadAskers, scaleAskers, restartAskers, everReady } = this.state;
    if (shutdown !== undefined) return this.ended !== undefined;
    return (
      everReady &&
      reload === undefined &&
      replacement === undefined &&
      replacementsWaiting.length === 0 &&
      reloadAskers.length + scaleAskers.length + restartAskers.length === 0 &&
      slots.every(({ index, worker }) => index >= desired || stateOf(worker) === 'ready') &&
      [...workers.values()].every(({ slot }) => slot < desired)
    );
    function stateOf(id: WorkerId | undefined): string | undefined {
      return id === undefined ? undefined : workers.get(id)?.state;
    }
  }

  stop(signal: typeof SIGINT | undefined): void {
    this.post({ type: 'stop', reason: 'test', signal });
  }

  tell(worker: WorkerId, event: WorkerEvent): void {
    this.post({ type: 'worker', worker, event });
  }

  froze(): void {
    this.hasFrozen = true;
  }

  buried(worker: WorkerId): void {
    this.processes.delete(worker);
  }

  askForReload(by: WorkerId | undefined, deployment = WELL_DEPLOYED): void {
    this.#program = this.#deploy(deployment);
    this.post({ type: 'reload', reason: 'test', asker: this.#asker(by) });
  }

  askToScale(by: WorkerId | undefined, workers = 2): void {
    this.post({ type: 'scale', workers, reason: 'test', asker: this.#asker(by) });
  }

  /** A worker asks for its own. */
  askToRestart(by: WorkerId | undefined, slot = 0): void {
    const asker = this.#asker(by);
    const which = asker.by === 'worker' ? asker.slot : slot;
    this.post({ type: 'restart', slot: which, reason: 'test', asker });
  }

  post(event: ClusterEvent): void {
    this.#posted.push(event);
    if (this.#handling) return;
    this.#handling = true;
    for (let next = this.#posted.shift(); next; next = this.#posted.shift()) this.#handle(next);
    this.#handling = false;
  }

  #handle(event: ClusterEvent): void {
    this.events += 1;
    const before = this.state;
    const result = transition(before, event, this.clock.now, this.settings);
    this.state = result.state;
    for (const effect of result.effects) this.#perform(effect);
    this.observe({ ...result, before, event, world: this });
  }

  #perform(effect: Effect): void {
    switch (effect.type) {
      case 'fork':
        return this.#fork(effect.worker, effect.release.script);
      case 'send':
        return this.#send(effect.worker, effect.message);
      case 'kill':
        return this.processes.get(effect.worker)?.signal(effect.signal);
      case 'abandon': {
        const exit = { code: null, signal: 'SIGKILL' } as const;
        return void this.clock.in(0, () => {
          this.buried(effect.worker);
          this.tell(effect.worker, { type: 'exited', exit, oomKill: false, at: '' });
        });
      }
      case 'force':
        return this.#send(effect.worker, { type: 'force' });
      case 'arm':
        return this.#arm(effect.timer, effect.ms);
      case 'disarm':
        return this.#disarm(keyOf(effect.timer));
      case 'answer-reload':
      case 'answer-restart':
      case 'answer-scale':
      case 'refuse-scale': {
        const name = nameOf(effect.asker);
        this.answered.set(name, (this.answered.get(name) ?? 0) + 1);
        return;
      }
      case 'reserve': {
        const { workers, reason, asker } = effect;
        const error = this.#refuses ? new Error('no address') : undefined;
        return this.post({ type: 'reserved', workers, reason, asker, error });
      }
      case 'find-program':
        return this.post({ type: 'program-found', program: this.find(effect.earlier) });
      case 'close-acceptors':
        return void this.clock.in(0, () => this.post({ type: 'acceptors-closed' }));
      case 'end':
        this.ended = effect.exitCode;
        return;
      case 'emit':
      case 'joined':
      case 'gone':
      case 'serving':
      case 'close-sockets':
        return; // nothing that the world would answer
    }
  }

  /** What a reload is to run, or whether the files of an earlier release are there. */
  find(earlier?: ProgramPaths): ProgramPaths | Error {
    if (earlier === undefined) return this.#program;
    return this.#deployed.get(earlier.script)?.isThere ? earlier : new Error('cleaned away');
  }

  #deploy({ broken, diesMs, files }: Deployment): ProgramPaths | Error {
    if (broken) return new Error('the script is not there');
    const newest = [...this.#deployed.keys()].at(-1)!;
    if (files === 'alone') for (const each of this.#deployed.values()) each.isThere = false;
    const script = files === 'over' ? newest : `release-${this.#deployed.size}.js`;
    this.#deployed.set(script, { diesMs, isThere: true });
    return { script, cwd: '/' };
  }

  #behaviourOf(id: WorkerId, script: string): Behaviour {
    if (this.healed) return WELL;
    const afterMs = this.#deployed.get(script)?.diesMs ?? 0;
    if (afterMs > 0) return { ...WELL, fate: { kind: 'dies', afterMs } };
    return this.scenario.behaviours[id - 1] ?? WELL;
  }

  #fork(id: WorkerId, script: string): void {
    const behaviour = this.#behaviourOf(id, script);
    const process = new SimulatedProcess(id, behaviour, this);
    this.processes.set(id, process);
    process.start();
  }

  #send(id: WorkerId, message: PrimaryMessage): void {
    this.processes.get(id)?.receive(message);
  }

  #arm(timer: Timer, ms: number): void {
    const key = keyOf(timer);
    this.#disarm(key);
    const fire = (): void => {
      this.armed.delete(key);
      this.post({ type: 'due', timer });
    };
    const due = this.clock.in(ms, fire, 'worker' in timer ? 'deadline' : 'timer');
    this.armed.set(key, { timer, due });
  }

  #disarm(key: string): void {
    const armed = this.armed.get(key);
    if (armed !== undefined) armed.due.cancelled = true;
    this.armed.delete(key);
  }

  #do(deed: Deed): void {
    if (this.healed) return;
    switch (deed.kind) {
      case 'reload':
        return this.askForReload(undefined, deed);
      case 'scale':
        this.#refuses = deed.refused;
        this.askToScale(undefined, deed.workers);
        this.#refuses = false;
        return;
      case 'restart':
        return this.askToRestart(undefined, deed.slot);
      case 'outage':
        for (const process of this.processes.values()) process.crash();
        return;
      case 'suspend':
        return this.clock.suspend(deed.ms, deed.workersToo);
    }
  }

  #beatEvery(ms: number): void {
    const beat = (): void => {
      this.post({ type: 'heartbeat-due', eventLoopUtilization: 0.1 });
      if (this.scenario.options.memory || this.scenario.options.recycle) this.#look();
      this.clock.in(ms, beat, 'timer');
    };
    this.clock.in(ms, beat, 'timer');
  }

  #look(): void {
    const readings = new Map<WorkerId, { residentBytes: number; requests: number }>();
    for (const { id, state, residentBytes, requests } of this.processes.values()) {
      if (state !== 'exited') readings.set(id, { residentBytes, requests });
    }
    this.post({ type: 'upkeep-due', readings });
  }

  #asker(by: WorkerId | undefined): Asker {
    const id = this.asked.size + 1;
    const slot = by === undefined ? undefined : this.state.workers.get(by)?.slot;
    const asker: Asker =
      by === undefined || slot === undefined
        ? { by: 'caller', id }
        : { by: 'worker', worker: by, slot, id };
    this.asked.add(nameOf(asker));
    return asker;
  }
}

export function nameOf(asker: Asker): string {
  return `${asker.by} ${asker.id}`;
}

export const SIGINT = { name: 'SIGINT', number: 2 } as const;

const RELEASE = { generation: 0, script: 'main.js', cwd: '/' };
