import { SetMetadata } from '@nestjs/common';

// A registered symbol: two copies of this package in one process know each other's methods.
const EVERY_WORKER = Symbol.for('nestjs-cluster.every-worker');

/**
 * Together with `@Cron()`, `@Interval()` or `@Timeout()`, the method runs in every worker, as it would
 * without `ClusterScheduleModule`. Use it for work on the process itself, such as its cache.
 */
export function EveryWorker(): MethodDecorator {
  return SetMetadata(EVERY_WORKER, true);
}

export function isForEveryWorker(method: object): boolean {
  return Reflect.getMetadata(EVERY_WORKER, method) === true;
}
