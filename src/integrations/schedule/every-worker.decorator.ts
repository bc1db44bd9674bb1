import { SetMetadata } from '@nestjs/common';

// A registered symbol, so that two copies of this package in one process agree.
const EVERY_WORKER = Symbol.for('nestjs-cluster.every-worker');

/**
 * With `@Cron()`, `@Interval()` or `@Timeout()`: runs the method in every worker, as without
 * `ClusterScheduleModule`. Use it for work on the process itself, such as its cache.
 */
export function EveryWorker(): MethodDecorator {
  return SetMetadata(EVERY_WORKER, true);
}

export function isForEveryWorker(method: object): boolean {
  return Reflect.getMetadata(EVERY_WORKER, method) === true;
}
