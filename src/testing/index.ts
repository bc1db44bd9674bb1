import { type DynamicModule, Module } from '@nestjs/common';
import { PUBLIC_PROVIDERS } from '../module/public-providers.js';
import { Terminus } from '../observe/health/terminus.js';
import { Offload } from '../offload/offload.service.js';
import { MODULE_OPTIONS, resolveModuleOptions } from '../contract/options/module.js';
import { CLUSTER_LINK } from '../contract/snapshot/index.js';
import { type FakeCluster, FakeLink } from './fake-link.js';

export type { FakeCluster };

/**
 * Replaces `ClusterModule` in unit tests. Provides the same injectable classes for a fake cluster.
 * `reload()` and `scale()` only change the result of `snapshot()`. The module adds no endpoints and
 * starts no threads. `@CpuBound()` methods run in the calling thread.
 */
@Module({})
export class ClusterTestingModule {
  /** @throws ClusterConfigurationError if the number of workers is out of range. */
  static forRoot(cluster: FakeCluster = {}): DynamicModule {
    return {
      module: ClusterTestingModule,
      global: true,
      providers: [
        { provide: CLUSTER_LINK, useValue: new FakeLink(cluster) },
        {
          provide: MODULE_OPTIONS,
          useValue: resolveModuleOptions({ health: false, metrics: false }, {}),
        },
        {
          provide: Offload,
          useValue: { snapshot: () => ({ threads: 0, running: 0, queueSize: 0 }) },
        },
        Terminus,
        ...PUBLIC_PROVIDERS,
      ],
      exports: [...PUBLIC_PROVIDERS],
    };
  }
}
