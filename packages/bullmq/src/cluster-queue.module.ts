import { type DynamicModule, Global, Module, type ModuleMetadata } from '@nestjs/common';
import { REMOTE_RUNNER } from 'nestjs-cluster/extension';
import { ClusterQueueHealthIndicator } from './cluster-queue.health.js';
import { ClusterQueues } from './cluster-queues.js';
import { type ClusterQueueOptions, QUEUE_OPTIONS, resolveQueueOptions } from './options.js';
import { QueueRunner } from './queue-runner.js';

/** The options of `forRootAsync()`. */
export interface ClusterQueueAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  readonly useFactory: (
    ...dependencies: never[]
  ) => ClusterQueueOptions | Promise<ClusterQueueOptions>;
  /** The tokens of the providers that `useFactory` gets as arguments. */
  readonly inject?: readonly unknown[] | undefined;
}

/**
 * Runs `@CpuBound({ queue })` methods on any machine that consumes their queue, by BullMQ on Redis.
 * Import this module once, in the root module, next to `ClusterModule`.
 */
@Global()
@Module({
  providers: [
    QueueRunner,
    { provide: REMOTE_RUNNER, useExisting: QueueRunner },
    ClusterQueues,
    ClusterQueueHealthIndicator,
  ],
  exports: [REMOTE_RUNNER, ClusterQueues, ClusterQueueHealthIndicator],
})
export class ClusterQueueModule {
  /** @throws ClusterConfigurationError for an option that is unknown or wrong. */
  static forRoot(options: ClusterQueueOptions): DynamicModule {
    const resolved = { provide: QUEUE_OPTIONS, useValue: resolveQueueOptions(options) };
    return { module: ClusterQueueModule, providers: [resolved] };
  }

  /** Like `forRoot()`, with options from a function that gets injected providers. */
  static forRootAsync(options: ClusterQueueAsyncOptions): DynamicModule {
    const { imports = [], inject = [], useFactory } = options;
    const resolved = {
      provide: QUEUE_OPTIONS,
      inject: [...inject] as never[],
      useFactory: async (...dependencies: never[]) =>
        resolveQueueOptions(await useFactory(...dependencies)),
    };
    return { module: ClusterQueueModule, imports, providers: [resolved] };
  }
}
