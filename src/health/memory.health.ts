import { Inject, Injectable } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { CLUSTER_LINK, type ClusterLink } from '../snapshot/index.js';

/** How much memory this process holds. For thresholds use terminus's own `MemoryHealthIndicator`. */
@Injectable()
export class ProcessMemoryHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK) private readonly link: ClusterLink,
    @Inject(HealthIndicatorService) private readonly health: HealthIndicatorService,
  ) {}

  check<const Key extends string = 'memory'>(key = 'memory' as Key): HealthIndicatorResult<Key> {
    const { residentMemoryBytes, heapUsedBytes } = this.link.stats();
    return this.health.check(key).up({ residentMemoryBytes, heapUsedBytes });
  }
}
