import { ConfigurableModuleBuilder, Global, Module } from '@nestjs/common';
import { REMOTE_RUNNER } from 'nestjs-cluster/extension';
import { ClusterQueueHealthIndicator } from './cluster-queue.health.js';
import { ClusterQueues } from './cluster-queues.js';
import { type ClusterQueueOptions, QUEUE_OPTIONS, resolveQueueOptions } from './options.js';
import { QueueRunner } from './queue-runner.js';

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<ClusterQueueOptions>().setClassMethodName('forRoot').build();

/**
 * Runs `@CpuBound({ queue })` methods on any machine that consumes their queue, with BullMQ and Redis.
 * Import `forRoot(options)` or `forRootAsync({ useFactory, inject })` once, in the root module, next
 * to `ClusterModule`.
 */
@Global()
@Module({
  providers: [
    {
      provide: QUEUE_OPTIONS,
      useFactory: (options: ClusterQueueOptions) => resolveQueueOptions(options),
      inject: [MODULE_OPTIONS_TOKEN],
    },
    QueueRunner,
    { provide: REMOTE_RUNNER, useExisting: QueueRunner },
    ClusterQueues,
    ClusterQueueHealthIndicator,
  ],
  exports: [REMOTE_RUNNER, ClusterQueues, ClusterQueueHealthIndicator],
})
export class ClusterQueueModule extends ConfigurableModuleClass {}
