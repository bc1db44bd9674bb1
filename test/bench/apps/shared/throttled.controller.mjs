import { Controller, Get, UseGuards } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { ThrottlerGuard, ThrottlerStorageService } from '@nestjs/throttler';
import { ClusterThrottlerStorage } from 'nestjs-cluster/throttler';
import { connectRedis } from './redis.mjs';

/** Clients who ask in turn. None is refused: what passes is what is measured. */
const CLIENTS = 1_000;
const LIMIT = { ttl: 1_000, limit: 1_000_000 };

class Guard extends ThrottlerGuard {
  #last = 0;
  async getTracker() {
    return String((this.#last = (this.#last + 1) % CLIENTS));
  }
}

/** One route for each storage, and one without. */
export async function throttledRoutes() {
  const guardWith = async (storage) => {
    await storage.onModuleInit?.();
    const guard = new Guard({ throttlers: [LIMIT] }, storage, new Reflector());
    await guard.onModuleInit();
    return guard;
  };
  const guards = {
    memory: await guardWith(new ThrottlerStorageService()),
    hub: await guardWith(new ClusterThrottlerStorage()),
    redis: await guardWith(new ThrottlerStorageRedisService(connectRedis())),
  };
  class ThrottledController {
    none() {
      return 'Hello World!';
    }
    memory() {
      return 'Hello World!';
    }
    hub() {
      return 'Hello World!';
    }
    redis() {
      return 'Hello World!';
    }
  }
  Controller()(ThrottledController);
  for (const name of ['none', 'memory', 'hub', 'redis']) {
    const descriptor = Object.getOwnPropertyDescriptor(ThrottledController.prototype, name);
    Get(name)(ThrottledController.prototype, name, descriptor);
    if (guards[name]) UseGuards(guards[name])(ThrottledController.prototype, name, descriptor);
  }
  return ThrottledController;
}
