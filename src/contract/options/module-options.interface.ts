import type { MetricsRegistry } from '../snapshot/index.js';
import type { OffloadMode } from './choices.js';
import type { InForce } from './resolved-options.interface.js';

/** How many workers must be ready: a whole number, a fraction of the desired workers (such as 0.5), or `'all'`. */
export type MinReady = number | 'all';

/** The result of a health indicator, by key, in the format of @nestjs/terminus. */
export type HealthIndicatorReport = Readonly<
  Record<
    string,
    { readonly status: 'up' | 'degraded' | 'down'; readonly [detail: string]: unknown }
  >
>;

/** A health indicator of the app: a function, or an injectable class with `check()`. */
export type HealthIndicatorEntry =
  | (() => HealthIndicatorReport | PromiseLike<HealthIndicatorReport>)
  | (new (...dependencies: never[]) => {
      check(): HealthIndicatorReport | PromiseLike<HealthIndicatorReport>;
    });

/** Options of the health endpoints. */
export interface HealthOptions {
  /** Path of the full report, and prefix of the paths of `/live` and `/ready`. Default `/health`. */
  path?: string | undefined;
  /** Whether reports have details. With `false` they have only statuses. Default true. */
  details?: boolean | undefined;
  /** Workers that must be ready for the cluster to be up. Default 1. */
  minReady?: MinReady | undefined;
  /**
   * Health indicators of the app, for the full report and the health check of a reload: functions,
   * and classes with `check()` that a module provides. An indicator that takes longer than 1 s
   * counts as down. Default none.
   */
  indicators?: readonly HealthIndicatorEntry[] | undefined;
}

/** Options of the metrics endpoint. */
export interface MetricsOptions {
  /** Path of the endpoint. Default `/metrics`. */
  path?: string | undefined;
  /** Bucket bounds of `http_request_duration_seconds`, in seconds, ascending. Default: the client's bounds. */
  buckets?: readonly number[] | undefined;
  /** A registry of the app, of prom-client or @prometheus-io/client. Default: the default registry of each that is installed. */
  registry?: MetricsRegistry | undefined;
  /**
   * Whether the app's metrics and the default metrics get the label `worker` (the slot). Otherwise
   * the metrics of all workers are merged. Default false.
   */
  perWorker?: boolean | undefined;
}

/** A class that Nest can instantiate. */
export type Class = new (...dependencies: never[]) => unknown;

/** Options of `@CpuBound()` methods in each process: every worker has its own threads and its own queue. */
export interface OffloadOptions {
  /**
   * Maximum number of threads of this process, 1..256. Threads start when calls wait. They end after
   * a minute in which this process had no call. Default `'auto'`: the number of cores divided by the number of
   * workers, at least 1. Environment: `CLUSTER_THREADS`.
   */
  threads?: number | 'auto' | undefined;
  /** Number of threads that run even without calls, from when the process serves, 0..256; at most `threads`. Default 0. */
  minThreads?: number | undefined;
  /**
   * Nest module with the classes of `@CpuBound()` methods whose constructors have dependencies.
   * Each thread creates the module once, so it should provide only what these methods need, without
   * timers, consumers or an HTTP server.
   */
  module?: Class | undefined;
  /** Maximum number of calls that wait for a thread, each for at most 5 s. Further calls are refused with 503. Default 10 000. */
  maxQueue?: number | undefined;
  /** Maximum run time of a call, in ms. A longer call fails with 504, and its thread is replaced. Default 30 000. */
  timeoutMs?: number | undefined;
}

/** Options of `ClusterModule.forRoot()`. Every option has a default. */
export interface ClusterModuleOptions {
  /** See {@link HealthOptions}; `false` serves no health endpoints. */
  health?: HealthOptions | false | undefined;
  /** See {@link MetricsOptions}; `false` serves no metrics endpoint and measures no requests. */
  metrics?: MetricsOptions | false | undefined;
  /** See {@link OffloadOptions}. */
  offload?: OffloadOptions | undefined;
}

/** A class that creates the options for `forRootAsync()`, given as `useClass` or `useExisting`. */
export interface ClusterModuleOptionsFactory {
  createClusterModuleOptions(): ClusterModuleOptions | Promise<ClusterModuleOptions>;
}

/** Injection token of the {@link ResolvedModuleOptions}. */
export const MODULE_OPTIONS = Symbol('nestjs-cluster.module-options');

/** {@link ClusterModuleOptions} with the defaults filled in. */
export interface ResolvedModuleOptions {
  readonly health: InForce<HealthOptions> | false;
  readonly metrics:
    | (InForce<Omit<MetricsOptions, 'registry'>> & Readonly<Pick<MetricsOptions, 'registry'>>)
    | false;
  readonly offload: ResolvedOffloadOptions;
}

/** {@link OffloadOptions} with the defaults and the environment applied. */
export type ResolvedOffloadOptions = InForce<Omit<OffloadOptions, 'module'>> &
  Readonly<Pick<OffloadOptions, 'module'>> & {
    /**
     * Set only by the environment variable `CLUSTER_OFFLOAD`. `vitest` is `inline` in a test of
     * Vitest that does not set the variable: threads cannot import the sources of the test.
     */
    readonly mode: OffloadMode | 'vitest';
  };
