import { Inject, Injectable } from '@nestjs/common';
import type { HealthIndicatorResult } from '@nestjs/terminus';
import { Offload } from '../../offload/index.js';
import { MODULE_OPTIONS, type ResolvedModuleOptions } from '../../contract/options/module.js';
import { judge, reportOf } from './limits.js';
import { Terminus } from './terminus.js';

/** Reports the threads of this process that run `@CpuBound()` methods, and the waiting calls. */
@Injectable()
export class OffloadHealthIndicator {
  constructor(
    @Inject(Terminus) private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
    @Inject(Offload) private readonly offload: Offload,
    @Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions,
  ) {}

  /**
   * Down while more calls wait than the limit, and degraded above 80 % of it.
   *
   * @param maxQueueSize limit of the number of calls that wait for a thread. Default: no limit.
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
