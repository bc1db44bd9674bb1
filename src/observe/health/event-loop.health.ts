import { Inject, Injectable } from '@nestjs/common';
import type { HealthIndicatorResult } from '@nestjs/terminus';
import { CLUSTER_LINK, type SharedStatePort } from '../../contract/snapshot/index.js';
import { judge, reportOf } from './limits.js';
import { Terminus } from './terminus.js';

/** How busy this process's event loop is. */
@Injectable()
export class EventLoopHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK) private readonly link: Pick<SharedStatePort, 'stats'>,
    @Inject(Terminus) private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
  ) {}

  /**
   * Up whenever it can answer, as a blocked event loop answers nothing; with a limit, down while the
   * delay is above it, and degraded above 80 % of it.
   *
   * @param maxDelayMs 99th percentile of the delay over the last heartbeat interval. Default: no limit.
   */
  check<const Key extends string = 'eventLoop'>(
    key = 'eventLoop' as Key,
    { maxDelayMs }: { maxDelayMs?: number | undefined } = {},
  ): HealthIndicatorResult<Key> {
    const { eventLoopUtilization, eventLoopDelayP99Ms } = this.link.stats();
    const judgement = judge([
      { name: 'eventLoopDelayP99Ms', value: eventLoopDelayP99Ms, limit: maxDelayMs },
    ]);
    return reportOf(this.terminus, key, judgement, { eventLoopUtilization, eventLoopDelayP99Ms });
  }
}
