import { Controller, Get } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { ClusterService } from 'nestjs-cluster';
import { ClusterCache } from '@nestjs-cluster/shared/cache';

interface Ticks {
  readonly count: number;
  /** The worker that ran the last one. */
  readonly slot: number;
  readonly at: string;
}

@Controller('shared/ticks')
export class TicksController {
  constructor(
    private readonly cluster: ClusterService,
    private readonly cache: ClusterCache,
  ) {}

  /** Each second, in the leader alone. */
  @Cron('* * * * * *')
  async tick(): Promise<void> {
    const count = (await this.last())?.count ?? 0;
    const { slot } = this.cluster.identity;
    const ticks: Ticks = { count: count + 1, slot, at: new Date().toISOString() };
    await this.cache.set('ticks', ticks);
  }

  /** Every worker knows of the last one. */
  @Get()
  async look(): Promise<{ slot: number; isLeader: boolean; last: Ticks | null }> {
    const { identity, isLeader } = this.cluster;
    return { slot: identity.slot, isLeader, last: (await this.last()) ?? null };
  }

  private last(): Promise<Ticks | undefined> {
    return this.cache.get<Ticks>('ticks');
  }
}
