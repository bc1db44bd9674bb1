import { SetMetadata } from '@nestjs/common';

// A registered symbol, so that two copies of this package in one process use the same key.
const EVERY_WORKER = Symbol.for('nestjs-cluster.every-worker');

/**
 * Runs a method that has `@Cron()`, `@Interval()` or `@Timeout()` in every worker, as Nest does
 * without `ClusterScheduleModule`. Use this for work on the process itself, for example to clear its cache.
 */
export function EveryWorker(): MethodDecorator {
  return SetMetadata(EVERY_WORKER, true);
}

export function isForEveryWorker(method: object): boolean {
  return Reflect.getMetadata(EVERY_WORKER, method) === true;
}
