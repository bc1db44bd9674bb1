import type { ClusterEventName, ClusterEvents, EmitEvent } from '../../src/events/index.js';
import {
  type ClusterOptions,
  type ResolvedClusterOptions,
  resolveOptions,
} from '../../src/options/index.js';
import type { Release } from '../../src/primary/release.js';
import type { Slot } from '../../src/primary/slot.js';
import { Succession } from '../../src/primary/succession.js';
import { WorkerTable } from '../../src/primary/worker-table.js';
import type { PrimaryStats, WorkerExit, WorkerState } from '../../src/snapshot/index.js';
import { FakeWorker } from './fake-worker.js';

export const releaseOf = (generation: number): Release => ({
  generation,
  script: `/app/${generation}/main.js`,
  cwd: `/app/${generation}`,
});

export const LISTENING = { balancing: 'shared', ports: [] } as const;

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

/** What the primary measures of itself. */
export const METER = { stats: () => PRIMARY };

export const EXIT: WorkerExit = {
  cause: 'crash',
  code: 1,
  signal: null,
  at: '2026-01-01T00:00:00.000Z',
};

/** A table with fake workers, and what the supervisor does around it: forks, exits, readiness. */
export class FakeCluster {
  readonly options: ResolvedClusterOptions;
  readonly table: WorkerTable;
  readonly succession: Succession;
  /** Every worker there ever was. */
  readonly forked: FakeWorker[] = [];
  /** Slots that were left without a worker. */
  readonly restarted: Slot[] = [];
  readonly #events: [ClusterEventName, unknown][] = [];
  #pid = 100;

  /** `workers` slots with a worker of generation 0 each, ready if nothing else is said. */
  constructor(workers = 2, options: ClusterOptions = {}, state: WorkerState = 'ready') {
    this.options = resolveOptions({ ...options, workers }, {});
    this.table = new WorkerTable(workers, LISTENING, releaseOf(0), METER);
    for (const slot of this.table.slots) slot.current = this.fork(slot, slot.release, state).handle;
    this.succession = new Succession(this.options, this.emit, {
      fork: (slot, release) => this.fork(slot, release).handle,
      restart: (slot) => void this.restarted.push(slot),
      wants: (slot) => this.table.wants(slot),
      post: ({ type, worker }) =>
        type === 'canary-over'
          ? this.succession.canaryOver(worker)
          : this.succession.checkOverdue(worker),
    });
  }

  readonly emit: EmitEvent = (name, event) => void this.#events.push([name, event]);

  /** Every event of one name, oldest first. */
  events<N extends ClusterEventName>(name: N): ClusterEvents[N][] {
    return this.#events.filter(([each]) => each === name).map(([, event]) => event) as never;
  }

  fork(slot: Slot, release: Release, state: WorkerState = 'starting'): FakeWorker {
    const { generation } = release;
    const worker = new FakeWorker({ slot: slot.index, pid: ++this.#pid, generation, state });
    this.forked.push(worker);
    return worker;
  }

  slot(index: number): Slot {
    return this.table.slots[index]!;
  }

  current(index: number): FakeWorker {
    return this.#find(this.slot(index).current, `worker of slot ${index}`);
  }

  candidate(index: number): FakeWorker {
    return this.#find(this.slot(index).candidate, `candidate of slot ${index}`);
  }

  #find(handle: FakeWorker['handle'] | undefined, what: string): FakeWorker {
    const found = this.forked.find((worker) => worker.handle === handle);
    if (found === undefined) throw new Error(`there is no ${what}`);
    return found;
  }

  /** As the supervisor takes the message `ready`. */
  becomeReady({ handle }: FakeWorker): void {
    handle.enter('ready');
    handle.readyAt = performance.now();
    this.succession.ready(handle);
  }

  /** As the supervisor takes the end of a process. Returns what the succession says of it. */
  exit({ handle }: FakeWorker, reason = 'exited with code 1'): boolean {
    handle.enter('exited');
    this.table.slotOf(handle).remove(handle, EXIT);
    return this.succession.left(handle, reason);
  }

  /** The answer to the last health check that `worker` was sent. */
  answerCheck(worker: FakeWorker, healthy: boolean, detail: string | null = null): void {
    const { id } = worker.sent('check').at(-1)!;
    this.succession.checked(worker.handle, id, { healthy, detail });
  }

  /** Slot, generation and state of each process. */
  get picture(): string[] {
    return this.table.workers.map(
      ({ identity, state }) => `${identity.slot}: gen=${identity.generation} ${state}`,
    );
  }
}
