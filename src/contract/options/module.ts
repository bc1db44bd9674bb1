// The options of the Nest module. They are separate from the options of bootstrap(), so that the
// primary does not load them.
import * as v from 'valibot';
import { ClusterConfigurationError } from '../errors/errors.js';
import type { MetricsRegistry } from '../snapshot/types.js';
import {
  durationMs,
  flag,
  integer,
  MAX_THREADS,
  type OffloadMode,
  offloadVariables,
  option,
  optionGroup,
  optionGroupOrFalse,
  readVariables,
  type SchemaOf,
  text,
  threads,
  validate,
} from './checks.js';

const path = text(
  /^(\/[\w.~-]+)+$/,
  "a path that begins with '/', without parameters, wildcards or a query",
);

/** How many workers must be ready: a whole number, a fraction of the desired workers (such as 0.5), or `'all'`. */
export type MinReady = number | 'all';

/** The result of a health indicator, by key, in the format of `@nestjs/terminus`. */
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

/** Options for the health endpoints. */
export interface HealthOptions {
  /** Path of the full report; `/live` and `/ready` are below it. Default `/health`. */
  path?: string | undefined;
  /** Whether reports have details, or only statuses. Default true. */
  details?: boolean | undefined;
  /**
   * Workers that must be ready for the cluster to be up: a number, a fraction such as 0.5, or
   * `'all'`. Default 1.
   */
  minReady?: MinReady | undefined;
  /**
   * The app's health indicators, for the full report and a reload's health check: functions, or
   * injectable classes with `check()`. An indicator that takes longer than 1 s counts as down.
   * Default none.
   */
  indicators?: readonly HealthIndicatorEntry[] | undefined;
}

const minReady = v.message(
  v.union([
    v.literal('all'),
    v.pipe(v.number(), v.integer(), v.minValue(1)),
    v.pipe(v.number(), v.gtValue(0), v.ltValue(1)),
  ]),
  "'all', a whole number of at least 1, or a fraction between 0 and 1",
);

const EXPECTED_INDICATORS = 'a list of functions and of injectable classes with check()';
const indicators = v.array(
  v.custom<HealthIndicatorEntry>((entry) => typeof entry === 'function', EXPECTED_INDICATORS),
  EXPECTED_INDICATORS,
);

const health = optionGroupOrFalse({
  path: option(path, '/health'),
  details: option(flag, true),
  minReady: option(minReady, 1),
  indicators: option(indicators, Object.freeze([])),
} satisfies SchemaOf<HealthOptions>);

/** Options for the metrics endpoint. */
export interface MetricsOptions {
  /** Path of the endpoint. Default `/metrics`. */
  path?: string | undefined;
  /** Bucket bounds of `http_request_duration_seconds`, in seconds, ascending. Default: 0.005 to 10, `prom-client`'s bounds. */
  buckets?: readonly number[] | undefined;
  /** The app's registry, from `prom-client` or `@prometheus-io/client`. Default: their default registries. */
  registry?: MetricsRegistry | undefined;
  /**
   * Labels the app's metrics and the default metrics with `worker` (the slot), instead of merging
   * all workers' values. Default false.
   */
  perWorker?: boolean | undefined;
}

const DEFAULT_BUCKETS = Object.freeze([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]);

const buckets = v.message(
  v.pipe(
    v.array(v.pipe(v.number(), v.finite(), v.gtValue(0))),
    v.minLength(1),
    v.check((bounds) => bounds.every((bound, i) => i === 0 || bound > bounds[i - 1]!)),
  ),
  'one or more positive numbers of seconds, ascending',
);

// Checks the method that is used, not the class, so that a registry of either client passes.
const registry = v.custom<MetricsRegistry>(
  (value) => typeof (value as MetricsRegistry | null)?.getMetricsAsJSON === 'function',
  'a Registry from prom-client or @prometheus-io/client',
);

const metrics = optionGroupOrFalse({
  path: option(path, '/metrics'),
  buckets: option(buckets, DEFAULT_BUCKETS),
  registry: v.optional(registry),
  perWorker: option(flag, false),
} satisfies SchemaOf<MetricsOptions>);

/** A class that Nest can instantiate. */
export type Class = new (...dependencies: never[]) => unknown;

/** Options for `@CpuBound()` methods. Every worker has its own threads and queue. */
export interface OffloadOptions {
  /**
   * Maximum number of threads, 1..256. They start when calls wait, and end after a minute without
   * calls. Default `'auto'`: the number of cores divided by the number of workers, at least 1.
   * Environment: `CLUSTER_THREADS`.
   */
  threads?: number | 'auto' | undefined;
  /** Number of threads that run even without calls, 0..256; at most `threads`. Default 0. */
  minThreads?: number | undefined;
  /**
   * Nest module that provides the dependencies of classes with `@CpuBound()` methods. Each thread
   * creates it once, so it should have no timers, consumers or HTTP server.
   */
  module?: Class | undefined;
  /**
   * Maximum number of calls waiting for a thread, at most 5 s each. Other calls fail with 503.
   * Default 10 000.
   */
  maxQueue?: number | undefined;
  /** Maximum run time of a call, in ms. Then it fails with 504, and its thread is replaced. Default 30 000. */
  timeoutMs?: number | undefined;
}

const offload = optionGroup({
  threads,
  minThreads: option(integer(0, MAX_THREADS), 0),
  module: v.optional(
    v.custom<Class>((value) => typeof value === 'function', 'a class with @Module()'),
  ),
  maxQueue: option(integer(0, 1_000_000), 10_000),
  timeoutMs: option(durationMs(1), 30_000),
} satisfies SchemaOf<OffloadOptions>);

/** Options of `ClusterModule.forRoot()`. Every option has a default. */
export interface ClusterModuleOptions {
  /** See {@link HealthOptions}; `false` disables the health endpoints. */
  health?: HealthOptions | false | undefined;
  /** See {@link MetricsOptions}; `false` disables the endpoint and the request metrics. */
  metrics?: MetricsOptions | false | undefined;
  /** See {@link OffloadOptions}. */
  offload?: OffloadOptions | undefined;
}

/** The options of `forRoot()` with their checks and defaults. */
export const moduleOptions = optionGroup({
  health,
  metrics,
  offload,
} satisfies SchemaOf<ClusterModuleOptions>);

/** Injection token of the {@link ResolvedModuleOptions}. */
export const MODULE_OPTIONS = Symbol('nestjs-cluster.module-options');

type Checked = v.InferOutput<typeof moduleOptions>;

/** {@link ClusterModuleOptions} with the defaults and the environment applied. */
export interface ResolvedModuleOptions extends Checked {
  readonly offload: Checked['offload'] & {
    /**
     * Set only by the environment variable `CLUSTER_OFFLOAD`. `vitest` means `inline` in a Vitest
     * test that does not set the variable: threads cannot import the test's sources.
     */
    readonly mode: OffloadMode | 'vitest';
  };
}

/**
 * Checks the options of `forRoot()` and fills in the defaults.
 *
 * @throws ClusterConfigurationError that names each key, the value seen and what is allowed.
 */
export function resolveModuleOptions(
  input: ClusterModuleOptions = {},
  env: NodeJS.ProcessEnv = process.env,
): ResolvedModuleOptions {
  const options = validate(moduleOptions, input, 'module options');
  const mode = isVitest(env) ? 'vitest' : 'threads';
  const offload = { mode, ...options.offload, ...readVariables(offloadVariables, env) } as const;
  const { health, metrics } = options;
  if (health && metrics) {
    const taken = [health.path, `${health.path}/live`, `${health.path}/ready`];
    if (taken.includes(metrics.path)) {
      throw new ClusterConfigurationError(
        `invalid module options: health.path ("${health.path}") and metrics.path ("${metrics.path}") name the same endpoint; change one of them`,
      );
    }
  }
  return { ...options, offload };
}

/** Whether this process runs a Vitest test. A program that the test starts inherits only `VITEST`. */
function isVitest(env: NodeJS.ProcessEnv): boolean {
  return env['VITEST'] !== undefined && '__vitest_worker__' in globalThis;
}

/** A class that creates the options for `forRootAsync()`, given as `useClass` or `useExisting`. */
export interface ClusterModuleOptionsFactory {
  createClusterModuleOptions(): ClusterModuleOptions | Promise<ClusterModuleOptions>;
}
