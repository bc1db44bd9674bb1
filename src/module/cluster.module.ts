import {
  type DynamicModule,
  Inject,
  Module,
  type ModuleMetadata,
  type NestModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { DiscoveryModule, HttpAdapterHost } from '@nestjs/core';
import { bootstrap, linkOfProcess } from '../bootstrap/bootstrap.js';
import type { AppFactory, AppOf, ClusterRuntime } from '../bootstrap/cluster-runtime.interface.js';
import { ClusterEventExplorer } from './on-cluster-event.js';
import { Routes } from '../observe/endpoints/routes.js';
import { HealthEndpoints } from '../observe/health/health.endpoints.js';
import { Terminus } from '../observe/health/terminus.js';
import { MetricsEndpoint } from '../observe/metrics/metrics.endpoint.js';
import { noteModuleInThread } from '../offload/cpu-bound.decorator.js';
import { OffloadExplorer } from '../offload/offload.explorer.js';
import { MODULE_ORIGIN, Offload } from '../offload/offload.service.js';
import { callerFile } from '../offload/task/caller-file.js';
import { type ClusterModuleAsyncOptions, lateOptions } from './async-options.js';
import { PUBLIC_PROVIDERS } from './public-providers.js';
import {
  type Class,
  type ClusterModuleOptions,
  MODULE_OPTIONS,
  resolveModuleOptions,
  type ResolvedModuleOptions,
} from '../contract/options/module.js';
import { ClusterConfigurationError } from '../contract/errors/errors.js';
import type { ClusterOptions } from '../contract/options/resolve.js';
import { CLUSTER_LINK, type ClusterLink } from '../contract/snapshot/types.js';

const PROVIDERS: Provider[] = [
  ...PUBLIC_PROVIDERS,
  Terminus,
  HealthEndpoints,
  MetricsEndpoint,
  Routes,
  ClusterEventExplorer,
  Offload,
  OffloadExplorer,
  { provide: CLUSTER_LINK, useFactory: linkOfProcess },
];

/**
 * Adds the whole cluster's `/health` and `/metrics` to an app, and makes `ClusterService` and the
 * health indicators injectable in all modules. Without `bootstrap()`, they see one process.
 */
@Module({
  // Used only for `imports: [ClusterModule]`. The providers of a dynamic module replace it.
  providers: [{ provide: MODULE_OPTIONS, useFactory: refuseStaticImport }],
})
export class ClusterModule
  implements
    NestModule,
    OnModuleInit,
    OnApplicationBootstrap,
    OnModuleDestroy,
    OnApplicationShutdown
{
  /** The same function as `bootstrap()` of `nestjs-cluster/bootstrap`. That entry point does not load Nest. */
  static bootstrap<F extends AppFactory>(
    createApp: F,
    options?: ClusterOptions,
  ): Promise<ClusterRuntime<AppOf<Awaited<ReturnType<F>>>>> {
    return bootstrap(createApp, options);
  }

  /** @throws ClusterConfigurationError for an option that is unknown or wrong. */
  static forRoot(options?: ClusterModuleOptions): DynamicModule {
    const resolved = resolveModuleOptions(options);
    const provider = { provide: MODULE_OPTIONS, useValue: resolved };
    return moduleWith([], [provider], resolved.offload.module, callerFile());
  }

  /**
   * Like `forRoot()`, with options from a function or a class that can use injected providers. The
   * options are checked when Nest creates them.
   */
  static forRootAsync(options: ClusterModuleAsyncOptions): DynamicModule {
    const { imports = [], offload } = options;
    return moduleWith(imports, lateOptions(options), offload?.module, callerFile());
  }

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions,
    @Inject(CLUSTER_LINK) private readonly link: ClusterLink,
    @Inject(HealthEndpoints) private readonly health: HealthEndpoints,
    @Inject(MetricsEndpoint) private readonly metrics: MetricsEndpoint,
    @Inject(Offload) private readonly offload: Offload,
    @Inject(Routes) private readonly routes: Routes,
  ) {
    // Starts in the constructor, because main.ts may register routes before Nest calls configure().
    if (host.httpAdapter) routes.follow(host.httpAdapter);
  }

  /** Nest calls this before it registers the app's routes, so our routes come first. */
  async configure(): Promise<void> {
    const { httpAdapter } = this.host;
    const { health, metrics } = this.options;
    this.routes.follow(httpAdapter); // again, because a testing module sets its adapter after the constructor
    await this.#prepare();
    const { showsDetails } = this.link;
    const page = metrics && this.metrics.mount(httpAdapter, metrics, showsDetails);
    const reports = health === false ? [] : this.health.mount(httpAdapter, health);
    this.link.announceEndpoints([...reports, ...(page && showsDetails ? [page] : [])]);
    await this.#startOffload();
  }

  /** Nest calls this after it has registered the app's routes. */
  async onModuleInit(): Promise<void> {
    this.routes.refuseShadowed();
    // Nest does not call configure() without an HTTP server. Without bootstrap(), no code uses the results.
    if (!this.host.httpAdapter && this.link.bootstrapped) await this.#prepare();
    await this.#startOffload();
  }

  onApplicationBootstrap(): void {
    this.link.attach(this.host.httpAdapter?.getHttpServer());
  }

  onModuleDestroy(): void {
    this.link.detach();
  }

  /** Ends the threads last, because other hooks and the last requests may still use them. */
  async onApplicationShutdown(): Promise<void> {
    await this.offload.close();
  }

  /** Starts this process's measurements and health checks. */
  async #prepare(): Promise<void> {
    const { health, metrics } = this.options;
    // One message lists the missing packages of both.
    const refusals: string[] = [];
    const refuse = (error: unknown): void => {
      if (!(error instanceof ClusterConfigurationError)) throw error;
      refusals.push(error.message);
    };
    if (metrics !== false) await this.metrics.measure(metrics).catch(refuse);
    if (health !== false) await this.health.prepare(health).catch(refuse);
    if (refusals.length > 0) throw new ClusterConfigurationError(refusals.join(' | '));
    if (health === false) return;
    this.link.provideHealth(() => this.health.verdict(), health.minReady);
  }

  async #startOffload(): Promise<void> {
    if (await this.offload.start()) await this.metrics.extend(async () => this.offload.metrics);
  }
}

function moduleWith(
  imports: NonNullable<ModuleMetadata['imports']>,
  options: readonly Provider[],
  module: Class | undefined,
  /** The caller of `forRoot()` or `forRootAsync()`. */
  origin: string | undefined,
): DynamicModule {
  noteModuleInThread(module);
  return {
    module: ClusterModule,
    global: true,
    imports: [DiscoveryModule, ...imports],
    providers: [...options, { provide: MODULE_ORIGIN, useValue: origin }, ...PROVIDERS],
    exports: [...PUBLIC_PROVIDERS],
  };
}

function refuseStaticImport(): never {
  throw new ClusterConfigurationError(
    'imports: [ClusterModule] has no options; import ClusterModule.forRoot() instead, in the root module only, because it is global',
  );
}
