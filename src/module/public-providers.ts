import {
  ClusterHealthIndicator,
  EventLoopHealthIndicator,
  OffloadHealthIndicator,
} from '../observe/health/indicators.js';
import { ClusterService } from './cluster.service.js';

/** The classes that an app can inject, from `ClusterModule` and from `ClusterTestingModule`. */
export const PUBLIC_PROVIDERS = [
  ClusterService,
  ClusterHealthIndicator,
  EventLoopHealthIndicator,
  OffloadHealthIndicator,
] as const;
