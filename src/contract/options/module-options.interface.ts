import type { Registry } from 'prom-client';
import type { OffloadMode } from './cluster-options.interface.js';
import type { InForce } from './resolved-options.interface.js';

/** Workers that must be ready: a count from 1, a share of the desired ones below 1, or all of them. */
export type MinReady = number | 'all';

/** The result of an indicator, by key, in the shape of terminus. */
export type HealthIndicatorReport = Readonly<
  Record<
    string,
    { readonly status: 'up' | 'degraded' | 'down'; readonly [detail: string]: unknown }
  >
>;

/** An indicator of the app's own: a function, or an injectable class with `check()`. */
export type HealthIndicatorEntry =
  | (() => HealthIndicatorReport | PromiseLike<HealthIndicatorReport>)
  | (new (...dependencies: never[]) => {
      check(): HealthIndicatorReport | PromiseLike<HealthIndicatorReport>;
    });

/** Options of the health endpoints. */
export interface HealthOptions {
  /** Path of the whole report; `/live` and `/ready` are below it. Default `/health`. */
  path?: string | undefined;
  /** `false` leaves out everything but up and down. Default true. */
  details?: boolean | undefined;
  /** Workers that must be ready for the cluster to be up. Default 1. */
  minReady?: MinReady | undefined;
  /**
   * Indicators of the app's own, in the whole report and in a reload's health check: functions, and
   * classes with `check()` that a module provides. One that takes longer than 1 s is down. Default none.
   */
  indicators?: readonly HealthIndicatorEntry[] | undefined;
}

/** Options of the metrics endpoint. */
export interface MetricsOptions {
  /** Path of the endpoint. Default `/metrics`. */
  path?: string | undefined;
  /** Put before each name that this package registers. Default none. */
  prefix?: string | undefined;
  /** Upper bounds of `http_request_duration_seconds`, in seconds, rising. Default: the bounds of prom-client. */
  buckets?: readonly number[] | undefined;
  /** The app's own registry. Default: prom-client's global one. */
  registry?: Registry | undefined;
  /**
   * Labels every metric of the app, and the default ones, with `worker` (the slot) instead of
   * merging them over the workers. Default false.
   */
  perWorker?: boolean | undefined;
}

/** A class, as Nest takes one. */
export type Class = new (...dependencies: never[]) => unknown;

/** Options of `@CpuBound()` methods in one process: each worker has threads and a queue of its own. */
export interface OffloadOptions {
  /**
   * Threads of this process at most, 1..256: they start when calls wait, and end after a minute
   * without a call. Default `'auto'`: the cores divided by the workers, so that all workers together
   * have a thread for each core, and each worker has at least one. Environment: `CLUSTER_THREADS`.
   */
  threads?: number | 'auto' | undefined;
  /**
   * Threads that start when the process serves, and stay, 0..256; more than `threads` are not
   * started. Default 0.
   */
  minThreads?: number | undefined;
  /**
   * Module from which a thread takes instances of classes whose constructor has dependencies. Each
   * thread builds it once: keep it to what the tasks need, without timers, consumers or an HTTP
   * server.
   */
  module?: Class | undefined;
  /** Calls that may wait for a thread; further ones are refused with 503. Default 10 000. */
  maxQueue?: number | undefined;
  /** Longest wait for a thread, then 503, in ms. Default 5 000. */
  queueTimeoutMs?: number | undefined;
  /** Longest run, then 504 and a fresh thread, in ms. Default 30 000. */
  timeoutMs?: number | undefined;
  /**
   * How much the nice value of threads is above the event loop's, 0..19 (Linux, macOS), so that the
   * event loop runs first. On Linux a thread takes it once it has loaded. Default 10.
   */
  niceIncrement?: number | undefined;
}

/** Options of `ClusterModule.forRoot()`. Every one has a default. */
export interface ClusterModuleOptions {
  /** See {@link HealthOptions}; `false` leaves the endpoints out. */
  health?: HealthOptions | false | undefined;
  /** See {@link MetricsOptions}; `false` leaves the endpoint out and measures no request. */
  metrics?: MetricsOptions | false | undefined;
  /** See {@link OffloadOptions}. */
  offload?: OffloadOptions | undefined;
}

/** A class that gives `forRootAsync()` its options: `useClass`, `useExisting`. */
export interface ClusterModuleOptionsFactory {
  createClusterModuleOptions(): ClusterModuleOptions | Promise<ClusterModuleOptions>;
}

/** Injection token of the {@link ResolvedModuleOptions}. */
export const MODULE_OPTIONS = Symbol('nestjs-cluster.module-options');

/** {@link ClusterModuleOptions} with every value in force; `Infinity` = no limit. */
export interface ResolvedModuleOptions {
  readonly health: InForce<HealthOptions> | false;
  readonly metrics:
    | (InForce<Omit<MetricsOptions, 'registry'>> & Readonly<Pick<MetricsOptions, 'registry'>>)
    | false;
  readonly offload: ResolvedOffloadOptions;
}

/** {@link OffloadOptions} with every value in force. */
export type ResolvedOffloadOptions = InForce<Omit<OffloadOptions, 'module'>> &
  Readonly<Pick<OffloadOptions, 'module'>> & {
    /** Given by the variable `CLUSTER_OFFLOAD` alone. */
    readonly mode: OffloadMode;
  };
