import { Inject, Injectable } from '@nestjs/common';
import { QUEUE_OPTIONS, type ResolvedQueueOptions } from './options.js';
import { QueueRunner } from './queue-runner.js';

/**
 * Health indicator for the queues' Redis server, for `health.indicators` of `ClusterModule`. While
 * Redis is unavailable, the status is `down`, or `degraded` with `onUnavailable: 'local'`.
 */
@Injectable()
export class ClusterQueueHealthIndicator {
  constructor(
    @Inject(QUEUE_OPTIONS) private readonly options: ResolvedQueueOptions,
    @Inject(QueueRunner) private readonly runner: QueueRunner,
  ) {}

  check(): { queue: { status: 'up' | 'degraded' | 'down'; [detail: string]: unknown } } {
    const { consumers } = this.runner;
    const running = consumers.reduce((sum, each) => sum + each.runningJobs, 0);
    const details = { consumes: consumers.map(({ name }) => name), running };
    // `up` is undefined if no method has a queue, so Redis is not needed.
    if (this.runner.up !== false) return { queue: { status: 'up', ...details } };
    const status = this.options.onUnavailable === 'local' ? 'degraded' : 'down';
    return { queue: { status, ...details, message: 'Redis is unavailable' } };
  }
}
