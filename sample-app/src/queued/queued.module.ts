import { type DynamicModule, Module } from '@nestjs/common';
import { ClusterQueueModule } from '@nestjs-cluster/bullmq';
import { JobsController } from './jobs.controller.js';
import { QueuedController } from './queued.controller.js';

@Module({ controllers: [QueuedController, JobsController] })
export class QueuedModule {
  static at(url: string): DynamicModule {
    return { module: QueuedModule, imports: [ClusterQueueModule.forRoot({ connection: { url } })] };
  }
}
