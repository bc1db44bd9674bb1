import { CacheModule } from '@nestjs/cache-manager';
import { Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { ScheduleModule } from '@nestjs/schedule';
import { ThrottlerModule } from '@nestjs/throttler';
import { ClusterCache, clusterCache } from '@nestjs-cluster/shared/cache';
import { ClusterEvents } from '@nestjs-cluster/shared/events';
import { ClusterLock } from '@nestjs-cluster/shared/lock';
import { ClusterScheduleModule } from 'nestjs-cluster/schedule';
import { ClusterThrottlerStorage } from '@nestjs-cluster/shared/throttler';
import { CacheController } from './cache.controller.js';
import { ChatController } from './chat.controller.js';
import { ChatGateway } from './chat.gateway.js';
import { LimitedController } from './limited.controller.js';
import { LockController } from './lock.controller.js';
import { NotesController } from './notes.controller.js';
import { TicksController } from './ticks.controller.js';

/** The features that workers share without Redis, a controller for each. Only there with SAMPLE_SHARED=1. */
@Module({
  imports: [
    ScheduleModule.forRoot(),
    ClusterScheduleModule.forRoot(),
    EventEmitterModule.forRoot(),
    CacheModule.register({ stores: [clusterCache({ maxBytes: 8 * 1024 * 1024 })] }),
    ThrottlerModule.forRoot({
      throttlers: [{ ttl: 10_000, limit: 5 }],
      storage: new ClusterThrottlerStorage(),
    }),
  ],
  controllers: [
    TicksController,
    LockController,
    LimitedController,
    CacheController,
    NotesController,
    ChatController,
  ],
  providers: [ClusterLock, ClusterCache, ClusterEvents, ChatGateway],
})
export class SharedModule {}
