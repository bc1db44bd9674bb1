import { vi } from 'vitest';
import { CANARY_MS } from '../../../src/decide/replace/replacement.js';
import {
  type ClusterEventName,
  type ClusterEventMap,
  type EmitEvent,
} from '../../../src/contract/log/events.js';
import {
  type ClusterOptions,
  type ResolvedClusterOptions,
  resolveOptions,
} from '../../../src/contract/options/resolve.js';
import type { Listening } from '../../../src/primary/listening/listening.js';
import type { ProcessExit } from '../../../src/decide/policies/failure.policy.js';
import type { Program } from '../../../src/primary/program.js';
import type { ProgramPaths } from '../../../src/decide/cluster-state.js';
import { transition } from '../../../src/decide/transition.js';
import type { WorkerHandle } from '../../../src/primary/worker-handle.js';
import { Supervisor } from '../../../src/primary/supervisor.js';
import type {
  ClusterSnapshot,
  PrimaryStats,
  ReloadResult,
  WorkerSnapshot,
  WorkerState,
} from '../../../src/contract/snapshot/types.js';
import { FakeWorker } from './fake-worker.js';

export const PRIMARY: PrimaryStats = {
  pid: 1,
  uptimeSeconds: 60,
  residentMemoryBytes: 80_000_000,
  heapUsedBytes: 20_000_000,
  eventLoopUtilization: 0.125,
  eventLoopDelayP99Ms: 3,
  cpuSecondsTotal: 7.5,
  gcSecondsTotal: 0.5,
  logLinesDroppedTotal: 4,
};

/** Its first random numbers are close to 0.5: the jitter is 0. */
const NO_JITTER_SEED = 911388993;

/** The real supervisor and core, with workers that have no process. Time is vitest's. */
export class FakeCluster {
  readonly options: ResolvedClusterOptions;
  readonly supervisor: Supervisor;
  /** Every worker there ever was. */
  readonly forked: FakeWorker[] = [];
  /** The arguments of each fork. */
  readonly forks: { slot: number; generation: number; script: string; printsBootError: boolean }[] =
    [];
  /** The program that the next reload finds, or the reason why it finds none. */
  program: ProgramPaths | Error = { script: '/app/main.js', cwd: '/app' };
  /** The reason why the previous release cannot be started again. */
  missing: Error | undefined;
  /** Why there is nothing to listen on for another slot. */
  refuseToListen: Error | undefined;
  /** For how many slots there was to be something to listen on. */
  readonly reserved: number[] = [];
  /** The workers that were given their socket. */
  readonly granted: WorkerHandle[] = [];
  /** Starts the thread of a package. */
  readonly threadOf = vi.fn<(name: string) => Promise<string>>();
  /** Called after each event. */
  heard: (name: ClusterEventName) => void = () => {};
  exitCode: number | undefined;
  readonly #events: [ClusterEventName, unknown][] = [];
  /** Pids above the maximum of Linux, so that /proc has none of them. */
  #pid = 2 ** 22;

  /** Every worker is of generation 0. */
  constructor(
    workers: ClusterOptions['workers'] = 2,
    options: ClusterOptions = {},
    state: 'starting' | 'ready' = 'ready',
  ) {
    // Otherwise workers start at 0, and a wrong sign before a start time goes unnoticed.
    if (vi.isFakeTimers()) vi.advanceTimersByTime(1_000);
    this.options = resolveOptions({ ...options, workers }, {});
    const listening = {
      balancing: 'shared',
      url: 'http://127.0.0.1:3000',
      ports: [],
      sockets: [],
      grant: (worker: WorkerHandle) => void this.granted.push(worker),
      reserve: (workers: number) => {
        this.reserved.push(workers);
        if (this.refuseToListen) throw this.refuseToListen;
      },
      settle: () => {},
      close: () => {},
    } as unknown as Listening;
    const program = {
      resolve: () => this.program,
      find: (earlier?: ProgramPaths) =>
        earlier === undefined ? this.program : (this.missing ?? earlier),
      revive: (release: unknown) => release,
    } as unknown as Program;
    this.supervisor = new Supervisor(this.options, listening, program, this.emit, () => 0, {
      decide: (core, ...rest) => transition({ ...core, seed: NO_JITTER_SEED }, ...rest),
      acceptors: { close: () => Promise.resolve() },
      threads: { path: this.threadOf },
      startProcess: ({ slot, release, printsBootError }, _program, _options, tell) => {
        const { generation, script } = release;
        const worker = new FakeWorker(
          { slot, pid: ++this.#pid, generation, state: 'starting' },
          tell,
        );
        this.forked.push(worker);
        this.forks.push({ slot, generation, script, printsBootError });
        return worker.handle;
      },
    });
    void this.supervisor.ended.then((exitCode) => (this.exitCode = exitCode));
    this.supervisor.start();
    if (state === 'ready') for (const worker of this.forked) worker.becomeReady();
  }

  readonly emit: EmitEvent = (name, event) => {
    this.#events.push([name, event]);
    this.heard(name);
  };

  /** Every event of one name, oldest first. */
  events<N extends ClusterEventName>(name: N): ClusterEventMap[N][] {
    return this.#events.filter(([each]) => each === name).map(([, event]) => event) as never;
  }

  /** Names of all events that the log tells, oldest first. */
  get story(): ClusterEventName[] {
    return this.#events.map(([name]) => name).filter((name) => name !== 'leader');
  }

  /** The newest worker of a slot. */
  newest(slot: number): FakeWorker {
    const worker = this.forked.findLast(({ handle }) => handle.identity.slot === slot);
    if (worker === undefined) throw new Error(`slot ${slot} never had a worker`);
    return worker;
  }

  /** Workers that are there, in a state, oldest first. */
  workers(state?: WorkerState): FakeWorker[] {
    return this.forked.filter(({ handle }) =>
      state === undefined ? handle.state !== 'exited' : handle.state === state,
    );
  }

  /** The entries of the snapshot about each process of a slot. */
  slot(index: number): WorkerSnapshot[] {
    return this.supervisor.snapshot().workers.filter(({ slot }) => slot === index);
  }

  /** Slot, generation and state of each process. */
  get picture(): string[] {
    return this.workers().map(
      ({ handle: { identity, state } }) => `${identity.slot}: gen=${identity.generation} ${state}`,
    );
  }

  /** The worker of a slot that serves, or is about to: the oldest that is not on its way out. */
  current(slot: number): FakeWorker {
    const worker = this.workers().find(
      ({ handle: { identity, state } }) => identity.slot === slot && state !== 'draining',
    );
    if (worker === undefined) throw new Error(`slot ${slot} has no worker`);
    return worker;
  }

  /** Lets a slot's new worker become ready and survive its canary time, until it is checked. */
  reachCheck(slot: number): FakeWorker {
    const candidate = this.newest(slot);
    candidate.becomeReady();
    vi.advanceTimersByTime(CANARY_MS);
    if (candidate.sent('check').length !== 1) throw new Error('it was not checked');
    return candidate;
  }

  /** A reload replaces so many slots: each new worker takes over, and the one before it ends. */
  replaceSlots(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const { slot } = this.forked.at(-1)!.handle.identity;
      const old = this.current(slot);
      this.reachCheck(slot).answerCheck(true);
      old.exit({ code: 0 });
    }
  }

  /** The worker of a slot is above a soft limit of 1 GB, so it is replaced. */
  outgrow(slot: number): void {
    this.current(slot).reports({ residentMemoryBytes: 2e9 });
    vi.advanceTimersByTime(1_000);
  }

  /** Asks for a reload; returns what is told, once it is. */
  reload(): ReloadResult[] {
    return answersOf(this.supervisor.reload('test'));
  }

  /** A release in a directory of its own is deployed, and reloaded. */
  deploy(name: string): ReloadResult[] {
    this.program = { script: `/app/${name}/main.js`, cwd: `/app/${name}` };
    return this.reload();
  }

  /** Asks for another number of workers; returns what is told, once it is. */
  scale(workers: number): (ClusterSnapshot | Error)[] {
    return answersOf<ClusterSnapshot | Error>(
      this.supervisor.scale(workers, 'test').catch((error: Error) => error),
    );
  }

  /** Resolves once the callbacks of settled promises have run. */
  settled(): Promise<void> {
    return new Promise((resolve) => process.nextTick(resolve));
  }

  /** The worker that serves a slot, not its candidate. */
  serving(slot: number): FakeWorker {
    const all = this.workers('ready').filter(({ handle }) => handle.identity.slot === slot);
    if (all[0] === undefined) throw new Error(`slot ${slot} is not served`);
    return all[0];
  }

  /** The newest worker of a slot takes over, and the one before it leaves. */
  succeed(slot: number): void {
    const old = this.serving(slot);
    this.newest(slot).becomeReady();
    old.exit({ code: 0 });
  }

  /** The newest worker of a slot ends. @returns how its next one is announced, where it is. */
  fail(
    slot: number,
    exit?: Partial<ProcessExit>,
  ): ClusterEventMap['worker-restarting'] | undefined {
    const before = this.events('worker-restarting').length;
    this.newest(slot).exit(exit);
    const announced = this.events('worker-restarting')[before];
    // The jitter is nearly 0, but not quite.
    return announced && { ...announced, delayMs: Math.round(announced.delayMs) };
  }

  /** It ends, and its next one is there. @returns that. */
  restart(slot: number, exit?: Partial<ProcessExit>): FakeWorker {
    const announced = this.fail(slot, exit);
    if (announced === undefined) throw new Error(`slot ${slot} gets no other worker`);
    vi.advanceTimersByTime(Math.ceil(announced.delayMs));
    return this.newest(slot);
  }
}

function answersOf<Answer>(promise: Promise<Answer>): Answer[] {
  const answers: Answer[] = [];
  void promise.then((answer) => answers.push(answer));
  return answers;
}
