import { Module } from '@nestjs/common';
import { ClusterModule } from 'nestjs-cluster';
import { AppController } from './app.controller.js';
import { AppService } from './app.service.js';
import { CpuModule } from './cpu/cpu.module.js';
import { EchoModule } from './echo/echo.module.js';
import { environment } from './environment.js';
import { EventsModule } from './events/events.module.js';
import { FaultsModule } from './faults/faults.module.js';
import { OffloadModule } from './offload/offload.module.js';
import { PrimesModule } from './offload/primes.module.js';
import { WaitModule } from './wait/wait.module.js';
import { WhoamiModule } from './whoami/whoami.module.js';

// BullMQ is loaded only where there is a Redis for it.
const queued =
  environment.redisUrl === undefined
    ? []
    : [(await import('./queued/queued.module.js')).QueuedModule.at(environment.redisUrl)];

// The features that workers share are loaded only on request.
const shared = environment.shared ? [(await import('./shared/shared.module.js')).SharedModule] : [];

@Module({
  imports: [
    ClusterModule.forRoot({ offload: { module: PrimesModule } }),
    CpuModule,
    OffloadModule,
    WhoamiModule,
    EchoModule,
    WaitModule,
    EventsModule,
    ...queued,
    ...shared,
    ...(environment.faults ? [FaultsModule] : []),
  ],
  controllers: [AppController],
  providers: [AppService],
})
export class AppModule {}
