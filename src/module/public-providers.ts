import { ClusterHealthIndicator } from '../observe/health/cluster.health.js';
import { EventLoopHealthIndicator } from '../observe/health/event-loop.health.js';
import { OffloadHealthIndicator } from '../observe/health/offload.health.js';
import { ClusterService } from './cluster.service.js';

/** The classes that an app can inject, from `ClusterModule` and from `ClusterTestingModule`. */
export const PUBLIC_PROVIDERS = [
  ClusterService,
  ClusterHealthIndicator,
  EventLoopHealthIndicator,
  OffloadHealthIndicator,
] as const;
