import { Controller, Get, NotFoundException, Param, Post } from '@nestjs/common';
import { ClusterQueues, type QueuedJob } from '@nestjs-cluster/bullmq';
import { LARGEST_FIBONACCI } from '../cpu/fibonacci.js';
import { IntegerInRangePipe } from '../pipes/integer-in-range.pipe.js';
import { QueuedController } from './queued.controller.js';

/** The same work, for which nobody waits. */
@Controller('jobs')
export class JobsController {
  constructor(private readonly queues: ClusterQueues) {}

  @Post('fib/:n')
  async add(
    @Param('n', new IntegerInRangePipe(0, LARGEST_FIBONACCI)) n: number,
  ): Promise<{ id: string }> {
    return { id: await this.queues.enqueue(QueuedController, 'fib', [n]) };
  }

  @Get(':queue/:id')
  async look(@Param('queue') queue: string, @Param('id') id: string): Promise<QueuedJob> {
    const job = await this.queues.job(`${queue}/${id}`);
    if (job === undefined) throw new NotFoundException();
    return job;
  }
}
