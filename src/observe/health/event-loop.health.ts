import { Inject, Injectable } from '@nestjs/common';
import type { HealthIndicatorResult } from '@nestjs/terminus';
import { CLUSTER_LINK, type ClusterLink } from '../../contract/snapshot/index.js';
import { judge, reportOf } from './limits.js';
import { Terminus } from './terminus.js';

/** Reports how busy the event loop of this process is. */
@Injectable()
export class EventLoopHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK) private readonly link: Pick<ClusterLink, 'stats'>,
    @Inject(Terminus) private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
  ) {}

  /**
   * Always up without a limit, because a blocked event loop cannot answer at all. With a limit,
   * down while the delay is above the limit, and degraded above 80 % of the limit.
   *
   * @param maxDelayMs limit of the 99th percentile in the last heartbeat interval. Default: no
   * limit.
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
