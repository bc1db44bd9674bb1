import { setTimeout } from 'node:timers/promises';
import { ConflictException, Controller, Get, Param } from '@nestjs/common';
import { ClusterService } from 'nestjs-cluster';
import { ClusterLock, ClusterLockTimeoutError } from '@nestjs-cluster/shared/lock';
import { IntegerInRangePipe } from '../pipes/integer-in-range.pipe.js';

interface Held {
  readonly slot: number;
  readonly from: string;
  readonly to: string;
}

@Controller('shared/lock')
export class LockController {
  constructor(
    private readonly cluster: ClusterService,
    private readonly lock: ClusterLock,
  ) {}

  /** Holds the lock for so long. No two answers of the cluster overlap. */
  @Get(':ms')
  async hold(@Param('ms', new IntegerInRangePipe(0, 5_000)) ms: number): Promise<Held> {
    const { slot } = this.cluster.identity;
    try {
      return await this.lock.runExclusive('sample', async () => {
        const from = new Date().toISOString();
        await setTimeout(ms);
        return { slot, from, to: new Date().toISOString() };
      });
    } catch (error) {
      if (error instanceof ClusterLockTimeoutError) throw new ConflictException(error.message);
      throw error;
    }
  }
}
