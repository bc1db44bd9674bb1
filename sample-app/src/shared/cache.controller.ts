import { setTimeout } from 'node:timers/promises';
import { type Cache, CACHE_MANAGER } from '@nestjs/cache-manager';
import { Body, Controller, Get, Inject, Param, Put } from '@nestjs/common';
import { ClusterService } from 'nestjs-cluster';
import { ClusterCache } from '@nestjs-cluster/shared/cache';

interface Computed {
  readonly value: number;
  /** The worker that computed it. */
  readonly slot: number;
}

@Controller('shared')
export class CacheController {
  constructor(
    private readonly cluster: ClusterService,
    @Inject(CACHE_MANAGER) private readonly manager: Cache,
    private readonly cache: ClusterCache,
  ) {}

  /** Sets a value that the next request can read in any worker. */
  @Put('cache/:key')
  async set(@Param('key') key: string, @Body() value: unknown): Promise<{ slot: number }> {
    await this.manager.set(key, value, 60_000);
    return { slot: this.cluster.identity.slot };
  }

  @Get('cache/:key')
  async get(@Param('key') key: string): Promise<{ slot: number; value: unknown }> {
    const value: unknown = await this.manager.get(key);
    return { slot: this.cluster.identity.slot, value: value ?? null };
  }

  /** Requests that come together have it computed once, in one worker. */
  @Get('computed/:key')
  computed(@Param('key') key: string): Promise<Computed> {
    const compute = async (): Promise<Computed> => {
      await setTimeout(100);
      return { value: Math.random(), slot: this.cluster.identity.slot };
    };
    return this.cache.getOrSet(`computed ${key}`, compute, { ttlMs: 10_000 });
  }
}
