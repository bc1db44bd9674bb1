import { resolveOptions } from '../../src/contract/options/resolve.js';
import type { ClusterEvent, WorkerEvent } from '../../src/decide/input.js';
import type { Transition } from '../../src/decide/transition.js';
import {
  type ClusterState,
  type ProgramPaths,
  replacementsOf,
  type Requester,
  type WorkerId,
} from '../../src/decide/cluster-state.js';
import { keyOf, type Settings } from '../../src/decide/step.js';
import { Clock } from './clock.js';
import { SimulatedProcess, type Surface } from './process.js';
import {
  type Behaviour,
  type Deed,
  type Deployment,
  type Scenario,
  WELL,
  WELL_DEPLOYED,
} from './scenario.js';

/** The primary of a simulated machine. */
export interface Primary {
  readonly state: ClusterState;
  /** How many ms a deadline of a worker may come early, for each suspension of the primary. */
  readonly earlyMs: number;
  begin(): void;
  stop(signal: typeof SIGINT | undefined): void;
  reload(requester: Requester): void;
  scale(workers: number, requester: Requester): void;
  restart(slot: number, requester: Requester): void;
  /** Takes an event of a worker: a message, or the exit of its process. */
  hear(worker: WorkerId, event: WorkerEvent): void;
  /** Checks the last step, if it has not been checked yet. @throws Broken */
  settle(): void;
}

/** A transition with its event and the state before it, for the invariants and the diary. */
export interface Observation extends Transition {
  readonly before: ClusterState;
  readonly event: ClusterEvent;
  readonly world: World;
}

/** A simulated machine with its own clock, a primary, and processes that follow a scenario. */
export class World implements Surface {
  readonly primary: Primary;
  readonly settings: Settings;
  events = 0;
  readonly processes = new Map<WorkerId, SimulatedProcess>();
  /** The timers that the effects so far have armed. */
  readonly armed = new Set<string>();
  readonly asked = new Set<string>();
  readonly answered = new Map<string, number>();
  ended: number | undefined;
  healed = false;
  /** Whether a process has survived SIGKILL. */
  hasFrozen = false;
  /** Whether the address for another slot is missing, so that scaling up is refused. */
  refuses = false;
  /** The program that a reload finds, or the error. */
  #program: ProgramPaths | Error = RELEASE;
  /** The deployed programs by script, the newest last. `isThere`: whether the files exist. */
  readonly #deployed = new Map<string, { diesMs: number; isThere: boolean }>([
    [RELEASE.script, { diesMs: 0, isThere: true }],
  ]);
  #callers = 0;

  constructor(
    readonly scenario: Scenario,
    private readonly observe: (observation: Observation) => void,
    primaryOf: (world: World) => Primary,
    readonly clock = new Clock(),
  ) {
    this.settings = settingsOf(scenario);
    this.primary = primaryOf(this);
  }

  get state(): ClusterState {
    return this.primary.state;
  }

  /** How many ms a deadline of a worker may have come early, after all suspensions so far. */
  get earlyMs(): number {
    return this.primary.earlyMs * this.clock.suspensions;
  }

  begin(): void {
    this.primary.begin();
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

  /** Lets this much simulated time pass. */
  run(forMs: number): void {
    this.clock.run(this.clock.now + forMs, () => {
      this.primary.settle();
      return this.ended === undefined;
    });
    this.primary.settle();
  }

  /** Ends all faults. Drains that hang go on, but workers forked from now on have no faults. */
  heal(): void {
    this.healed = true;
    for (const process of this.processes.values()) process.heal(this.scenario.inspected);
  }

  /** Whether nothing is under way and every wanted slot has a ready worker. */
  get atRest(): boolean {
    const { slots, desired, workers, reload, shutdown } = this.state;
    const { replacementsWaiting, pendingRequests, everReady } = this.state;
    if (shutdown !== undefined) return this.ended !== undefined;
    return (
      everReady &&
      reload === undefined &&
      replacementsOf(this.state).length === 0 &&
      replacementsWaiting.length === 0 &&
      pendingRequests.length === 0 &&
      slots.every(({ index, worker }) => index >= desired || stateOf(worker) === 'ready') &&
      [...workers.values()].every(({ slot }) => slot < desired)
    );
    function stateOf(id: WorkerId | undefined): string | undefined {
      return id === undefined ? undefined : workers.get(id)?.state;
    }
  }

  stop(signal: typeof SIGINT | undefined): void {
    this.primary.stop(signal);
  }

  tell(worker: WorkerId, event: WorkerEvent): void {
    this.primary.hear(worker, event);
  }

  froze(): void {
    this.hasFrozen = true;
  }

  buried(worker: WorkerId): void {
    this.processes.delete(worker);
  }

  askForReload(by: WorkerId | undefined, deployment = WELL_DEPLOYED): void {
    this.#program = this.#deploy(deployment);
    this.primary.reload(this.#requester(by));
  }

  askToScale(by: WorkerId | undefined, workers = 2): void {
    this.primary.scale(workers, this.#requester(by));
  }

  /** A worker always requests the restart of its own slot. */
  askToRestart(by: WorkerId | undefined, slot = 0): void {
    const requester = this.#requester(by);
    const which = requester.by === 'worker' ? requester.slot : slot;
    this.primary.restart(which, requester);
  }

  /** Records the effects of a step and has the invariants checked. */
  check(step: Observation): void {
    this.events += 1;
    if (step.event.type === 'due') this.armed.delete(keyOf(step.event.timer));
    for (const effect of step.effects) {
      if (effect.type === 'arm') this.armed.add(keyOf(effect.timer));
      else if (effect.type === 'disarm') this.armed.delete(keyOf(effect.timer));
      else if (effect.type === 'end') this.ended = effect.exitCode;
      else if (effect.type === 'answer') {
        const name = nameOf(effect.requester);
        this.answered.set(name, (this.answered.get(name) ?? 0) + 1);
      }
    }
    this.observe(step);
  }

  /** Finds the program for a reload, or an earlier release if its files still exist. */
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

  fork(id: WorkerId, script: string): SimulatedProcess {
    const process = new SimulatedProcess(id, this.#behaviourOf(id, script), this);
    this.processes.set(id, process);
    return process;
  }

  #do(deed: Deed): void {
    if (this.healed) return;
    switch (deed.kind) {
      case 'reload':
        return this.askForReload(undefined, deed);
      case 'scale':
        this.refuses = deed.refused;
        this.askToScale(undefined, deed.workers);
        this.refuses = false;
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

  #requester(by: WorkerId | undefined): Requester {
    const slot = by === undefined ? undefined : this.state.workers.get(by)?.slot;
    const requester: Requester =
      by === undefined || slot === undefined
        ? { by: 'caller', id: (this.#callers += 1) }
        : { by: 'worker', worker: by, slot, id: this.asked.size + 1 };
    this.asked.add(nameOf(requester));
    return requester;
  }
}

export function nameOf(requester: Requester): string {
  return `${requester.by} ${requester.id}`;
}

export const SIGINT = { name: 'SIGINT', number: 2 } as const;

export const RELEASE = { generation: 0, script: 'main.js', cwd: '/' };

const DEFAULTS = resolveOptions({}, {});

/** The settings of a scenario. Options that the scenario does not have get their defaults. */
function settingsOf({ options, inspected }: Scenario): Settings {
  const { readyTimeoutMs, hangTimeoutMs, observeMs } = options;
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = options;
  return {
    options: {
      readyTimeoutMs,
      hangTimeoutMs,
      memory: options.memory
        ? { ...DEFAULTS.memory, softLimitBytes: 500e6, hardLimitBytes: 900e6 }
        : DEFAULTS.memory,
      recycle: options.recycle
        ? { ...DEFAULTS.recycle, maxRequests: 1_000, maxAgeMs: 20_000 }
        : DEFAULTS.recycle,
      reload: { observeMs },
      shutdown: { ...DEFAULTS.shutdown, lameDuckMs, drainTimeoutMs, killTimeoutMs },
    },
    url: 'http://127.0.0.1:3000',
    mayBeDebugged: inspected,
    machineClockMs: 0,
  };
}
