import { Inject, Injectable } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import type { MinReady } from '../options/module.js';
import { describeCluster, judgeCluster } from '../exposition/cluster-report.js';
import { CLUSTER_LINK, type ClusterLink } from '../snapshot/index.js';
import { reportAs } from './report-as.js';

/** Whether enough workers are ready, and what is known of each. */
@Injectable()
export class ClusterHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK) private readonly link: ClusterLink,
    @Inject(HealthIndicatorService) private readonly health: HealthIndicatorService,
  ) {}

  /**
   * Up while this process accepts requests and enough slots have a worker that is ready and answers
   * its heartbeats. Degraded where that holds, but a slot is in a crash loop or a worker does not
   * answer.
   *
   * @param minReady a count, a share of the desired workers, or `'all'`. Default 1.
   */
  async check<const Key extends string = 'cluster'>(
    key = 'cluster' as Key,
    { minReady = 1 }: { minReady?: MinReady } = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const aged = await this.link.snapshot();
    const report = describeCluster(aged);
    const indicator = this.health.check(key);
    // Looked at last: a drain may have begun while the primary was asked.
    if (!this.link.accepting) {
      return indicator.down({ ...report, reason: 'this worker is draining' });
    }
    const { status, reason } = judgeCluster(aged.snapshot, minReady, this.link.identity.pid);
    return reportAs(indicator, status, { ...report, ...(reason !== undefined && { reason }) });
  }
}
