import { Inject, Injectable } from '@nestjs/common';
import type { HealthIndicatorResult } from '@nestjs/terminus';
import type { MinReady } from '../../contract/options/module.js';
import { describeCluster, judgeCluster } from '../exposition/cluster-report.js';
import { CLUSTER_LINK, type ClusterLink } from '../../contract/snapshot/index.js';
import { reportOf } from './limits.js';
import { Terminus } from './terminus.js';

/** Reports whether enough workers are ready, and the state of each worker. */
@Injectable()
export class ClusterHealthIndicator {
  constructor(
    @Inject(CLUSTER_LINK)
    private readonly link: Pick<ClusterLink, 'accepting' | 'identity' | 'snapshot'>,
    @Inject(Terminus) private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
  ) {}

  /**
   * Up while this process accepts requests and enough slots have a ready worker that answers its
   * heartbeats. Degraded instead of up if a slot is in a crash loop or a worker does not answer.
   *
   * @param minReady a count, a share of the desired workers, or `'all'`. Default 1.
   */
  async check<const Key extends string = 'cluster'>(
    key = 'cluster' as Key,
    { minReady = 1 }: { minReady?: MinReady } = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const aged = await this.link.snapshot();
    const report = describeCluster(aged);
    // Read last, because a drain may have begun during the request to the primary.
    const judgement = this.link.accepting
      ? judgeCluster(aged.snapshot, minReady, this.link.identity.pid)
      : { status: 'down' as const, reason: 'this worker is draining' };
    return reportOf(this.terminus, key, judgement, report);
  }
}
