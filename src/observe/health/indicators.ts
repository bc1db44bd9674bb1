import { Inject, Injectable } from '@nestjs/common';
import type { HealthIndicatorResult } from '@nestjs/terminus';
import {
  type MinReady,
  MODULE_OPTIONS,
  type ResolvedModuleOptions,
} from '../../contract/options/module.js';
import { CLUSTER_LINK, type ClusterLink } from '../../contract/snapshot/types.js';
import { Offload } from '../../offload/offload.service.js';
import { describeCluster, type Judgement, judgeCluster } from '../exposition/cluster-report.js';
import { Terminus } from './terminus.js';

/** The status is degraded above this ratio of the limit. */
const DEGRADED_RATIO = 0.8;

function judge(name: string, value: number, limit = Infinity) {
  if (value > limit) {
    return { status: 'down', message: `${name} is ${value}, above its limit of ${limit}` } as const;
  }
  if (value > DEGRADED_RATIO * limit) {
    return {
      status: 'degraded',
      message: `${name} is ${value}, near its limit of ${limit}`,
    } as const;
  }
  return { status: 'up' } as const;
}

/** Adds the status to a report. Before version 12, terminus has no `degraded`, so the status is `up`. */
function reportOf<Key extends string>(
  { knowsDegraded }: Pick<Terminus, 'knowsDegraded'>,
  key: Key,
  { status, ...why }: Judgement,
  report: object,
): HealthIndicatorResult<Key> {
  const known = status === 'degraded' && !knowsDegraded ? 'up' : status;
  return { [key]: { ...report, ...why, status: known } } as HealthIndicatorResult<Key>;
}

/** Reports whether enough workers are ready, and the state of each worker. */
@Injectable()
export class ClusterHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK)
    private readonly link: Pick<ClusterLink, 'accepting' | 'identity' | 'snapshot'>,
    @Inject(Terminus) private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
  ) {}

  /**
   * Up if this process accepts requests and enough slots have a ready worker that answers heartbeats.
   * Degraded instead of up if a slot is in a crash loop or a worker does not answer.
   *
   * @param minReady a count, a ratio of the desired workers, or `'all'`. Default 1.
   */
  async check<const Key extends string = 'cluster'>(
    key = 'cluster' as Key,
    { minReady = 1 }: { minReady?: MinReady } = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const aged = await this.link.snapshot();
    const report = describeCluster(aged);
    // Must be read last, because a drain may have begun during the request to the primary.
    const judgement = this.link.accepting
      ? judgeCluster(aged.snapshot, minReady, this.link.identity.pid)
      : { status: 'down' as const, reason: 'this worker is draining' };
    return reportOf(this.terminus, key, judgement, report);
  }
}

/** Reports how busy the event loop of this process is. */
@Injectable()
export class EventLoopHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK) private readonly link: Pick<ClusterLink, 'stats'>,
    @Inject(Terminus) private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
  ) {}

  /**
   * Down if the delay exceeds the limit, and degraded above 80 % of the limit. Without a
   * limit, it is always up, because a blocked event loop cannot run the check.
   *
   * @param maxDelayMs limit on the p99 delay over the last heartbeat interval. Default: none.
   */
  check<const Key extends string = 'eventLoop'>(
    key = 'eventLoop' as Key,
    { maxDelayMs }: { maxDelayMs?: number | undefined } = {},
  ): HealthIndicatorResult<Key> {
    const { eventLoopUtilization, eventLoopDelayP99Ms } = this.link.stats();
    const judgement = judge('eventLoopDelayP99Ms', eventLoopDelayP99Ms, maxDelayMs);
    return reportOf(this.terminus, key, judgement, { eventLoopUtilization, eventLoopDelayP99Ms });
  }
}

/** Reports the threads for `@CpuBound()` methods in this process, and the waiting calls. */
@Injectable()
export class OffloadHealthIndicator {
  constructor(
    @Inject(Terminus) private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
    @Inject(Offload) private readonly offload: Offload,
    @Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions,
  ) {}

  /**
   * Down if the waiting calls exceed the limit, and degraded above 80 % of it.
   *
   * @param maxQueueSize limit on calls that wait for a thread. Default: no limit.
   */
  check<const Key extends string = 'offload'>(
    key = 'offload' as Key,
    { maxQueueSize }: { maxQueueSize?: number | undefined } = {},
  ): HealthIndicatorResult<Key> {
    const { maxQueue } = this.options.offload;
    const { threads, running, queueSize } = this.offload.snapshot();
    const details = { threads, running, queueSize, maxQueue };
    const judgement = judge('queueSize', queueSize, maxQueueSize);
    return reportOf(this.terminus, key, judgement, details);
  }
}
