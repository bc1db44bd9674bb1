import { Inject, Injectable } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import type { MinReady } from '../options/module.js';
import {
  type AgedSnapshot,
  CLUSTER_LINK,
  type ClusterLink,
  type WorkerSnapshot,
} from '../snapshot/index.js';

/** Whether enough workers are ready, and what is known of each. */
@Injectable()
export class ClusterHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK) private readonly link: ClusterLink,
    @Inject(HealthIndicatorService) private readonly health: HealthIndicatorService,
  ) {}

  /**
   * Up while this process accepts requests and enough workers are ready.
   *
   * @param minReady a count, a share of the desired workers, or `'all'`. Default 1.
   */
  async check<const Key extends string = 'cluster'>(
    key = 'cluster' as Key,
    { minReady = 1 }: { minReady?: MinReady } = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const { accepting } = this.link;
    const aged = await this.link.snapshot();
    const { desired, ready } = aged.snapshot;
    const indicator = this.health.check(key);
    const report = describe(aged);
    if (!accepting) return indicator.down({ ...report, reason: 'this worker is draining' });
    const needed = neededWorkers(minReady, desired);
    return ready >= needed
      ? indicator.up(report)
      : indicator.down({ ...report, reason: `${ready} of ${needed} needed workers are ready` });
  }
}

function neededWorkers(minReady: MinReady, desired: number): number {
  if (minReady === 'all') return desired;
  return minReady < 1 ? Math.ceil(minReady * desired) : minReady;
}

function describe({ snapshot, ageMs }: AgedSnapshot) {
  const { desired, ready, generation, degraded, balancing, ports, workers } = snapshot;
  return {
    desired,
    ready,
    generation,
    degraded,
    balancing,
    ...(ports.length > 0 && { ports }),
    // Only a snapshot that the primary did not confirm has an age.
    ...(ageMs > 0 && { snapshotAgeMs: ageMs }),
    workers: workers.map(describeWorker),
  };
}

/** Field by field: what is added to a snapshot is not published by accident. */
function describeWorker(worker: WorkerSnapshot) {
  return {
    slot: worker.slot,
    pid: worker.pid,
    generation: worker.generation,
    state: worker.state,
    uptimeSeconds: worker.uptimeSeconds,
    restarts: worker.restarts,
    lastExit: worker.lastExit,
    heartbeatAgeMs: worker.heartbeatAgeMs,
    residentMemoryBytes: worker.residentMemoryBytes,
    heapUsedBytes: worker.heapUsedBytes,
    eventLoopUtilization: worker.eventLoopUtilization,
    eventLoopDelayP99Ms: worker.eventLoopDelayP99Ms,
    openConnections: worker.openConnections,
    requestsInFlight: worker.requestsInFlight,
    requestsTotal: worker.requestsTotal,
  };
}
