import { Module } from '@nestjs/common';
import { ClusterModule } from 'nestjs-cluster';
import { AppController } from '../../../sample-app/dist/app.controller.js';
import { AppService } from '../../../sample-app/dist/app.service.js';
import { CpuModule } from '../../../sample-app/dist/cpu/cpu.module.js';
import { EchoModule } from '../../../sample-app/dist/echo/echo.module.js';
import { EventsModule } from '../../../sample-app/dist/events/events.module.js';
import { WaitModule } from '../../../sample-app/dist/wait/wait.module.js';
import { WhoamiModule } from '../../../sample-app/dist/whoami/whoami.module.js';

const offloaded = process.env.CPU_BOUND === '0' ? undefined : await offloadedModules();

/** The sample app's modules in its own order. */
export class VariantModule {}
Module({
  imports: [
    ClusterModule.forRoot({
      ...(offloaded && { offload: { module: offloaded.PrimesModule } }),
      ...JSON.parse(process.env.MODULE_OPTIONS ?? '{}'),
    }),
    CpuModule,
    ...(offloaded ? [offloaded.OffloadModule] : []),
    WhoamiModule,
    EchoModule,
    WaitModule,
    EventsModule,
  ],
  controllers: [AppController],
  providers: [AppService],
})(VariantModule);

async function offloadedModules() {
  const { OffloadModule } = await import('../../../sample-app/dist/offload/offload.module.js');
  const { PrimesModule } = await import('../../../sample-app/dist/offload/primes.module.js');
  return { OffloadModule, PrimesModule };
}
