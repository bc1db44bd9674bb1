import { Inject, Injectable } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { CLUSTER_LINK, type ClusterLink } from '../snapshot/index.js';

/** How busy this process's event loop is. */
@Injectable()
export class EventLoopHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK) private readonly link: ClusterLink,
    @Inject(HealthIndicatorService) private readonly health: HealthIndicatorService,
  ) {}

  /** Up whenever it can answer: a blocked event loop answers nothing. */
  check<const Key extends string = 'eventLoop'>(
    key = 'eventLoop' as Key,
  ): HealthIndicatorResult<Key> {
    const { eventLoopUtilization, eventLoopDelayP99Ms } = this.link.stats();
    return this.health.check(key).up({ eventLoopUtilization, eventLoopDelayP99Ms });
  }
}
