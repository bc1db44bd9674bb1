export { ClusterQueueHealthIndicator } from './cluster-queue.health.js';
export { ClusterQueueModule } from './cluster-queue.module.js';
export { ClusterQueues, type QueuedJob } from './cluster-queues.js';
export type { ClusterQueueOptions } from './options.js';
