import { checkSlot, checkWorkerCount } from '../../contract/options/schema.js';
import type {
  AgedSnapshot,
  ClusterLink,
  ClusterSnapshot,
  CollectedMetrics,
  LeaderRole,
  ReloadResult,
  RestartResult,
  WorkerIdentity,
  WorkerStats,
} from '../../contract/snapshot/index.js';

/** A fake cluster for tests. */
export interface FakeCluster {
  /** The worker that runs the code under test. Default: slot 0, generation 0, the test's pid. */
  readonly identity?: Partial<WorkerIdentity> | undefined;
  /** The number of workers, all of them ready. Default: `identity.slot` + 1. */
  readonly workers?: number | undefined;
  /** Whether this worker is the leader. Default: `true` in slot 0, otherwise `false`. */
  readonly isLeader?: boolean | undefined;
}

/** The measurements of a worker that has done nothing. */
const STATS: WorkerStats = {
  residentMemoryBytes: 0,
  heapUsedBytes: 0,
  eventLoopUtilization: 0,
  eventLoopDelayP99Ms: 0,
  cpuSecondsTotal: 0,
  gcSecondsTotal: 0,
  threadUtilization: 0,
  openConnections: 0,
  requestsInFlight: 0,
  requestsTotal: 0,
  rebalancedConnectionsTotal: 0,
  logLinesDroppedTotal: 0,
  droppedConnectionsTotal: 0,
};

/** The first pid of the fake workers. Linux has no pids of this size, so no real process has the pid. */
const FIRST_PID = 2 ** 22;

/** The link to a fake cluster. Measures nothing and sends no messages. */
export class TestingLink implements ClusterLink {
  readonly bootstrapped = false;
  readonly accepting = true;
  readonly showsDetails = true;
  readonly leaderRole: LeaderRole;
  readonly #own: WorkerIdentity;
  #workers: number;
  #generation: number;
  #reloads = 0;

  /** @throws ClusterConfigurationError if the number of workers is out of range. */
  constructor({
    identity: { slot = 0, pid = process.pid, generation = 0 } = {},
    workers,
    isLeader = slot === 0,
  }: FakeCluster) {
    this.leaderRole = {
      leads: isLeader,
      owns: () => isLeader,
      follow: (told) => {
        if (isLeader) told({ isFirst: true, done: [] });
      },
      begun: () => {},
    };
    this.#own = { slot, pid, generation };
    this.#generation = generation;
    this.#workers = checkWorkerCount(workers ?? slot + 1);
  }

  get identity(): WorkerIdentity {
    return { ...this.#own, generation: this.#generation };
  }

  get workers(): number {
    return this.#workers;
  }

  stats(): WorkerStats {
    return STATS;
  }

  async snapshot(): Promise<AgedSnapshot> {
    return { snapshot: this.#snapshot(), ageMs: 0 };
  }

  async collectMetrics(): Promise<CollectedMetrics> {
    return { snapshot: this.#snapshot(), workers: [], retired: [] };
  }

  async reload(): Promise<ReloadResult> {
    this.#generation += 1;
    this.#reloads += 1;
    return { outcome: 'completed', generation: this.#generation, reason: null };
  }

  async scale(workers: number): Promise<ClusterSnapshot> {
    this.#workers = checkWorkerCount(workers);
    return this.#snapshot();
  }

  async restart(slot: number): Promise<RestartResult> {
    return { outcome: 'completed', slot: checkSlot(slot), reason: null };
  }

  thread(): undefined {
    return undefined;
  }

  contributeMetrics(): void {}

  warn(): void {}

  watchClient(): () => void {
    return () => {};
  }

  provideThreads(): boolean {
    return false;
  }

  onEvent(): void {}
  offEvent(): void {}
  provideMetrics(): void {}
  provideHealth(): void {}
  observeResponses(): void {}
  readonly scope = undefined;
  followScopes(): void {}
  provideTasks(): void {}

  onDrain(): void {}
  reportBootFailure(): void {}
  attach(): void {}
  detach(): void {}
  afterStart(): void {}
  announceEndpoints(): void {}

  #snapshot(): ClusterSnapshot {
    const workers = Array.from({ length: this.#workers }, (_, slot) => ({
      slot,
      pid: slot === this.#own.slot ? this.#own.pid : FIRST_PID + slot,
      generation: this.#generation,
      state: 'ready' as const,
      uptimeSeconds: 1,
      restarts: 0,
      restartsByCause: {},
      lastExit: null,
      degraded: false,
      abortedRequestsTotal: 0,
      droppedMessagesTotal: 0,
      heartbeatAgeMs: 0,
      responsive: true,
      ...STATS,
    }));
    return {
      balancing: 'none',
      ports: [],
      desired: this.#workers,
      ready: this.#workers,
      minReady: 1,
      generation: this.#generation,
      degraded: 0,
      reloads: { completed: this.#reloads, aborted: 0, reverted: 0 },
      dismissed: [],
      workers,
      primary: null,
    };
  }
}
