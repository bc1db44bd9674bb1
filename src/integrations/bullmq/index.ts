export { ClusterQueueHealthIndicator } from './cluster-queue.health.js';
export { type ClusterQueueAsyncOptions, ClusterQueueModule } from './cluster-queue.module.js';
export { ClusterQueues, type QueuedJob } from './cluster-queues.js';
export type { EnqueueOptions } from './enqueue-options.js';
export type { ClusterQueueOptions } from './queue-options.js';
