import { Inject, Injectable } from '@nestjs/common';
import type { HealthIndicatorResult } from '@nestjs/terminus';
import { CLUSTER_LINK, type SharedStatePort } from '../../contract/snapshot/index.js';
import { judge } from './limits.js';
import { reportAs } from './report-as.js';
import { Terminus } from './terminus.js';

/**
 * How much memory this process holds. Not public: in a controller of the app's
 * own, terminus's `MemoryHealthIndicator` does the same.
 */
@Injectable()
export class ProcessMemoryHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK) private readonly link: Pick<SharedStatePort, 'stats'>,
    @Inject(Terminus) private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
  ) {}

  /** Down above a limit, degraded above 80 % of one. */
  check<const Key extends string = 'memory'>(
    key = 'memory' as Key,
    limits: { maxHeapUsedBytes?: number; maxResidentMemoryBytes?: number } = {},
  ): HealthIndicatorResult<Key> {
    const { residentMemoryBytes, heapUsedBytes } = this.link.stats();
    const { status, ...why } = judge([
      { name: 'heapUsedBytes', value: heapUsedBytes, limit: limits.maxHeapUsedBytes },
      {
        name: 'residentMemoryBytes',
        value: residentMemoryBytes,
        limit: limits.maxResidentMemoryBytes,
      },
    ]);
    return reportAs(this.terminus, key, status, {
      residentMemoryBytes,
      heapUsedBytes,
      ...why,
    });
  }
}
