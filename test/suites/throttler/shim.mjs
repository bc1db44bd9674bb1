// Takes the place of @nestjs/testing, Redis and the storage in the tests of @nest-lab/throttler-storage-redis.
import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import { Module } from '@nestjs/common';
import { ClusterThrottlerStorage } from '@nestjs-cluster/shared/throttler';
import { Cluster } from '../cluster.mjs';

/** The storage of this package in place of the one in Redis. The tests flush it between two apps. */
export class ThrottlerStorageRedisService {
  #storage = new ClusterThrottlerStorage();
  constructor() {
    globalThis.flushStorage = () => (this.#storage = new ClusterThrottlerStorage());
  }
  onModuleInit() {
    return this.#storage.onModuleInit();
  }
  /** @returns {Promise<unknown>} */
  increment(...hit) {
    return this.#storage.increment(...hit);
  }
}

const connection = (name) => ({ name, quit() {}, nodes: () => [] });
/** The tests run once for each of the two: first in one process, then in the workers of a cluster. */
export const redis = connection('one process');
export const cluster = connection('three workers');

/** Set by the tests: the connection that they run for. */
export const current = { name: '' };

async function appOfWorkers(adapter) {
  const workers = await Cluster.start({
    program: join(import.meta.dirname, 'app.mjs'),
    options: { workers: 3, balancing: 'round-robin' },
    env: { SUITE_ADAPTER: adapter.constructor.name },
  });
  return { getUrl: () => workers.url, close: () => workers.stop() };
}

async function appOfThisProcess(adapter, metadata) {
  globalThis.flushStorage();
  class AppModule {}
  Module(metadata)(AppModule);
  const app = await NestFactory.create(AppModule, adapter, { logger: ['error'] });
  await app.listen(0, '127.0.0.1');
  return app;
}

export const Test = {
  createTestingModule: (metadata) => ({
    compile: () => ({
      createNestApplication(adapter) {
        let app;
        return {
          async listen() {
            app = await (current.name === cluster.name
              ? appOfWorkers(adapter)
              : appOfThisProcess(adapter, metadata));
          },
          getUrl: () => app.getUrl(),
          close: () => app.close(),
        };
      },
    }),
  }),
};
