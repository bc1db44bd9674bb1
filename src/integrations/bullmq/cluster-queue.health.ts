import { Inject, Injectable } from '@nestjs/common';
import { QUEUE_OPTIONS, type ResolvedQueueOptions } from './queue-options.js';
import { QueueRunner } from './queue-runner.js';

/**
 * Shows whether the Redis of the queues answers, for `health.indicators` of `ClusterModule`. While
 * Redis is away, the status is `down`, or `degraded` with `onUnavailable: 'local'`.
 */
@Injectable()
export class ClusterQueueHealthIndicator {
  constructor(
    @Inject(QUEUE_OPTIONS) private readonly options: ResolvedQueueOptions,
    @Inject(QueueRunner) private readonly runner: QueueRunner,
  ) {}

  check<const Key extends string = 'queue'>(
    key = 'queue' as Key,
  ): Record<Key, { status: 'up' | 'degraded' | 'down'; [detail: string]: unknown }> {
    const { consumers } = this.runner;
    const running = consumers.reduce((sum, { jobs }) => sum + jobs, 0);
    const details = { consumes: [...new Set(consumers.map(({ label }) => label))], running };
    // `up` is undefined if no method has a queue. In this case nothing needs Redis, so the status is `up`.
    const isUp = this.runner.up !== false;
    const away = this.options.onUnavailable === 'local' ? 'degraded' : 'down';
    const report = isUp
      ? { status: 'up' as const, ...details }
      : { status: away as 'degraded' | 'down', ...details, message: 'Redis is away' };
    return { [key]: report } as Record<Key, typeof report>;
  }
}
