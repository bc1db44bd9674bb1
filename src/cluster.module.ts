import {
  type DynamicModule,
  Inject,
  Module,
  type ModuleMetadata,
  type NestModule,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type Provider,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { TerminusModule } from '@nestjs/terminus';
import { bootstrap } from './bootstrap/bootstrap.js';
import type { ClusterRuntime, CreateApp } from './bootstrap/cluster-runtime.interface.js';
import { linkOfThisProcess } from './bootstrap/current-link.js';
import { ClusterService } from './cluster.service.js';
import { ClusterHealthIndicator } from './health/cluster.health.js';
import { EventLoopHealthIndicator } from './health/event-loop.health.js';
import { HealthEndpoints } from './health/health.endpoints.js';
import { ProcessMemoryHealthIndicator } from './health/memory.health.js';
import { OffloadHealthIndicator } from './health/offload.health.js';
import { MetricsEndpoint } from './metrics/metrics.endpoint.js';
import {
  type ClusterModuleOptions,
  MODULE_OPTIONS,
  resolveModuleOptions,
  type ResolvedModuleOptions,
} from './options/module.js';
import type { ClusterOptions } from './options/index.js';
import { CLUSTER_LINK, type ClusterLink } from './snapshot/index.js';

/** How `forRootAsync()` gets its options. */
export interface ClusterModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** Providers that `useFactory` takes. */
  readonly inject?: readonly unknown[];
  readonly useFactory: (
    ...dependencies: never[]
  ) => ClusterModuleOptions | Promise<ClusterModuleOptions>;
}

const PUBLIC_PROVIDERS = [
  ClusterService,
  ClusterHealthIndicator,
  EventLoopHealthIndicator,
  OffloadHealthIndicator,
] as const;

const PROVIDERS: Provider[] = [
  ...PUBLIC_PROVIDERS,
  ProcessMemoryHealthIndicator,
  HealthEndpoints,
  MetricsEndpoint,
  { provide: CLUSTER_LINK, useFactory: linkOfThisProcess },
];

/**
 * Adds `/health` and `/metrics` of the whole cluster to an app, and makes
 * `ClusterService` and the health indicators injectable everywhere in it.
 * Without `bootstrap()` they report the one process there is.
 */
@Module({})
export class ClusterModule implements NestModule, OnApplicationBootstrap, OnModuleDestroy {
  /** The same as `bootstrap` of `nestjs-cluster/bootstrap`, which loads nothing of Nest. */
  static bootstrap(createApp: CreateApp, options?: ClusterOptions): Promise<ClusterRuntime> {
    return bootstrap(createApp, options);
  }

  /** @throws ClusterConfigurationError for an option that is unknown or wrong. */
  static forRoot(options?: ClusterModuleOptions): DynamicModule {
    return moduleWith([], { provide: MODULE_OPTIONS, useValue: resolveModuleOptions(options) });
  }

  /** `forRoot()` with options that a factory makes, from injected providers. */
  static forRootAsync({
    imports = [],
    inject = [],
    useFactory,
  }: ClusterModuleAsyncOptions): DynamicModule {
    return moduleWith(imports, {
      provide: MODULE_OPTIONS,
      inject: [...inject] as never[],
      useFactory: async (...dependencies: never[]) => {
        const given = await useFactory(...dependencies);
        try {
          return resolveModuleOptions(given);
        } catch (error) {
          await linkOfThisProcess().reportBootFailure(error);
          throw error;
        }
      },
    });
  }

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions,
    @Inject(CLUSTER_LINK) private readonly link: ClusterLink,
    @Inject(HealthEndpoints) private readonly health: HealthEndpoints,
    @Inject(MetricsEndpoint) private readonly metrics: MetricsEndpoint,
  ) {}

  /** Nest calls this before it registers the app's routes: ours come first. */
  configure(): void {
    const { httpAdapter } = this.host;
    const { health, metrics } = this.options;
    // Metrics first: on Fastify they see only routes that are registered after them.
    const page = metrics === false ? [] : [this.metrics.mount(httpAdapter, metrics)];
    const reports = health === false ? [] : this.health.mount(httpAdapter, health);
    if (health !== false) this.link.provideHealth(() => this.health.verdict());
    this.link.announceEndpoints([...reports, ...page]);
  }

  onApplicationBootstrap(): void {
    const server: unknown = this.host.httpAdapter?.getHttpServer();
    if (server !== undefined) this.link.attach(server);
  }

  onModuleDestroy(): void {
    this.link.detach();
  }
}

function moduleWith(
  imports: NonNullable<ModuleMetadata['imports']>,
  options: Provider,
): DynamicModule {
  return {
    module: ClusterModule,
    global: true,
    imports: [TerminusModule, ...imports],
    providers: [options, ...PROVIDERS],
    exports: [...PUBLIC_PROVIDERS],
  };
}
