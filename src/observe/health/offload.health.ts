import { Inject, Injectable } from '@nestjs/common';
import type { HealthIndicatorResult } from '@nestjs/terminus';
import { Offload } from '../../offload/index.js';
import { MODULE_OPTIONS, type ResolvedModuleOptions } from '../../contract/options/module.js';
import { judge, reportOf } from './limits.js';
import { Terminus } from './terminus.js';

/** A queue that is full for longer than this, in ms, is not just a burst of calls. */
const QUEUE_FULL_MS = 5_000;

/**
 * Reports the threads of this process that run `@CpuBound()` methods, and the waiting calls. Down
 * if the queue has been full for longer than 5 s, or if no thread can be started.
 */
@Injectable()
export class OffloadHealthIndicator {
  constructor(
    @Inject(Terminus) private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
    @Inject(Offload) private readonly offload: Offload,
    @Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions,
  ) {}

  /**
   * With a limit, also down while more calls wait, and degraded above 80 % of the limit.
   *
   * @param maxQueueSize limit of the number of calls that wait for a thread. Default: no limit.
   */
  check<const Key extends string = 'offload'>(
    key = 'offload' as Key,
    { maxQueueSize }: { maxQueueSize?: number | undefined } = {},
  ): HealthIndicatorResult<Key> {
    const { maxQueue } = this.options.offload;
    const { threads, running, queueSize, fullForMs, unavailable } = this.offload.snapshot();
    const details = { threads, running, queueSize, maxQueue };
    const down = (message: string) =>
      reportOf(this.terminus, key, { status: 'down', message }, details);
    if (unavailable) return down('no thread can be started');
    if (fullForMs > QUEUE_FULL_MS) {
      const seconds = Math.round(fullForMs / 1_000);
      return down(`the queue has been full for ${seconds} s`);
    }
    const judgement = judge('queueSize', queueSize, maxQueueSize);
    return reportOf(this.terminus, key, judgement, details);
  }
}
