import { type DynamicModule, Module } from '@nestjs/common';
import { checkSlot, checkWorkerCount } from '../contract/options/resolve.js';
import { MODULE_OPTIONS, resolveModuleOptions } from '../contract/options/module.js';
import {
  type AgedSnapshot,
  CLUSTER_LINK,
  type ClusterLink,
  type ClusterSnapshot,
  type CollectedMetrics,
  type LeaderRole,
  type ReloadResult,
  type RestartResult,
  type WorkerIdentity,
  snapshotOf,
  workerSnapshot,
} from '../contract/snapshot/types.js';
import { STAT_NAMES, type WorkerStats } from '../contract/stats.js';
import { PUBLIC_PROVIDERS } from '../module/public-providers.js';
import { Terminus } from '../observe/health/terminus.js';
import { Offload } from '../offload/offload.service.js';

/** Options of a fake cluster for tests. */
export interface FakeCluster {
  /** The worker that runs the code under test. Default: slot 0, generation 0, the test's pid. */
  readonly identity?: Partial<WorkerIdentity> | undefined;
  /** The number of workers. All are ready. Default: `identity.slot` + 1. */
  readonly workers?: number | undefined;
  /** Whether this worker is the leader. Default: `true` in slot 0, otherwise `false`. */
  readonly isLeader?: boolean | undefined;
}

const STATS = Object.fromEntries(STAT_NAMES.map((name) => [name, 0])) as unknown as WorkerStats;

/** The first pid of the other workers. It is above the maximum pid on Linux, so no real process has it. */
const FIRST_PID = 2 ** 22;

const nothing = (): void => {};

class FakeLink implements ClusterLink {
  readonly bootstrapped = false;
  readonly accepting = true;
  readonly showsDetails = true;
  readonly scope = undefined;
  readonly leaderRole: LeaderRole;
  identity: WorkerIdentity;
  workers: number;

  /** @throws ClusterConfigurationError if the number of workers is out of range. */
  constructor({
    identity: { slot = 0, pid = process.pid, generation = 0 } = {},
    workers = slot + 1,
    isLeader = slot === 0,
  }: FakeCluster) {
    this.identity = { slot, pid, generation };
    this.workers = checkWorkerCount(workers);
    this.leaderRole = {
      leads: isLeader,
      owns: () => isLeader,
      follow: (listener) => isLeader && listener({ isFirst: true, done: [] }),
      begun: nothing,
    };
  }

  async snapshot(): Promise<AgedSnapshot> {
    const { slot: own, pid, generation } = this.identity;
    const workers = Array.from({ length: this.workers }, (_, slot) => {
      const identity = { slot, pid: slot === own ? pid : FIRST_PID + slot, generation };
      return workerSnapshot(identity, STATS, { state: 'ready', uptimeSeconds: 1 });
    });
    const snapshot = snapshotOf(workers, { balancing: 'none', minReady: 1, generation });
    return { snapshot, ageMs: 0 };
  }

  async collectMetrics(): Promise<CollectedMetrics> {
    return { ...(await this.snapshot()), workers: [], retired: [] };
  }

  async reload(): Promise<ReloadResult> {
    const generation = this.identity.generation + 1;
    this.identity = { ...this.identity, generation };
    return { outcome: 'completed', generation, reason: null };
  }

  async scale(workers: number): Promise<ClusterSnapshot> {
    this.workers = checkWorkerCount(workers);
    return (await this.snapshot()).snapshot;
  }

  async restart(slot: number): Promise<RestartResult> {
    return { outcome: 'completed', slot: checkSlot(slot), reason: null };
  }

  readonly stats = (): WorkerStats => STATS;
  readonly watchClient = (): (() => void) => nothing;
  readonly provideThreads = (): boolean => false;
  readonly thread = nothing as () => undefined;
  readonly warn = nothing;
  readonly onEvent = nothing;
  readonly offEvent = nothing;
  readonly provideMetrics = nothing;
  readonly metrics = nothing;
  readonly provideHealth = nothing;
  readonly onDrainTasks = nothing;
  readonly observeResponses = nothing;
  readonly followScopes = nothing;
  readonly attach = nothing;
  readonly detach = nothing;
  readonly onDrain = nothing;
  readonly announceEndpoints = nothing;
  readonly refuseStart = nothing;
}

/**
 * Replaces `ClusterModule` in unit tests. Provides the same injectable classes for a fake cluster.
 * `reload()` and `scale()` only change the result of `snapshot()`. There are no endpoints and no
 * threads: `@CpuBound()` methods run in the calling thread.
 */
@Module({})
export class ClusterTestingModule {
  /** @throws ClusterConfigurationError if the number of workers is out of range. */
  static forRoot(cluster: FakeCluster = {}): DynamicModule {
    return {
      module: ClusterTestingModule,
      global: true,
      providers: [
        { provide: CLUSTER_LINK, useValue: new FakeLink(cluster) },
        {
          provide: MODULE_OPTIONS,
          useValue: resolveModuleOptions({ health: false, metrics: false }, {}),
        },
        {
          provide: Offload,
          useValue: { snapshot: () => ({ threads: 0, running: 0, queueSize: 0 }) },
        },
        Terminus,
        ...PUBLIC_PROVIDERS,
      ],
      exports: [...PUBLIC_PROVIDERS],
    };
  }
}
