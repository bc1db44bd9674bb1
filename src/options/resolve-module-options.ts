import type { Registry } from 'prom-client';
import * as v from 'valibot';
import { ClusterConfigurationError } from '../errors/index.js';
import { DEFAULTS } from './defaults.js';
import { readEnvironment } from './environment.js';
import type {
  Class,
  ClusterModuleOptions,
  HealthIndicatorEntry,
  ResolvedModuleOptions,
} from './module-options.interface.js';
import { MAX_THREADS, memoryBytes, offloadModeSchema, threadsSchema } from './options.schema.js';
import {
  durationMs,
  flag,
  integer,
  optionGroup,
  optionGroupOrFalse,
  validate,
} from './validate.js';

const EXPECTED_PATH = "a path that begins with '/', without parameters, wildcards or a query";
const EXPECTED_PREFIX = 'letters, digits, _ and :, not beginning with a digit';
const EXPECTED_BUCKETS = 'a rising list of at least one positive number of seconds';
const EXPECTED_MIN_READY = "'all', a whole number from 1, or a share above 0 and below 1";
const EXPECTED_INDICATORS = 'a list of functions and of injectable classes with check()';

const path = v.pipe(v.string(EXPECTED_PATH), v.regex(/^(\/[\w.~-]+)+$/, EXPECTED_PATH));

const healthSchema = optionGroupOrFalse({
  path,
  details: flag,
  minReady: v.union(
    [
      v.literal('all'),
      v.pipe(v.number(), v.integer(), v.minValue(1)),
      v.pipe(v.number(), v.gtValue(0), v.ltValue(1)),
    ],
    EXPECTED_MIN_READY,
  ),
  indicators: v.array(
    v.custom<HealthIndicatorEntry>((entry) => typeof entry === 'function', EXPECTED_INDICATORS),
    EXPECTED_INDICATORS,
  ),
  indicatorTimeoutMs: durationMs(1),
  maxEventLoopDelayMs: durationMs(1),
  maxHeapUsedBytes: memoryBytes,
  maxResidentMemoryBytes: memoryBytes,
  maxQueueSize: integer(0, 1_000_000),
});

const metricsSchema = optionGroupOrFalse({
  path,
  prefix: v.pipe(v.string(EXPECTED_PREFIX), v.regex(/^([a-zA-Z_:][\w:]*)?$/, EXPECTED_PREFIX)),
  buckets: v.pipe(
    v.array(
      v.pipe(
        v.number(EXPECTED_BUCKETS),
        v.finite(EXPECTED_BUCKETS),
        v.gtValue(0, EXPECTED_BUCKETS),
      ),
      EXPECTED_BUCKETS,
    ),
    v.minLength(1, EXPECTED_BUCKETS),
    v.check(
      (bounds) => bounds.every((bound, i) => i === 0 || bound > bounds[i - 1]!),
      EXPECTED_BUCKETS,
    ),
  ),
  // By what is needed of it: an instance of another copy of prom-client is as good.
  registry: v.custom<Registry>(
    (value) => typeof (value as Registry | null)?.getMetricsAsArray === 'function',
    'a Registry of prom-client',
  ),
  defaultMetrics: flag,
  perWorker: flag,
  maxSeries: integer(1, 1_000_000),
});

const offloadSchema = optionGroup({
  mode: offloadModeSchema,
  threads: threadsSchema,
  minThreads: integer(0, MAX_THREADS),
  module: v.custom<Class>((value) => typeof value === 'function', 'a class with @Module()'),
  maxQueue: integer(0, 1_000_000),
  queueTimeoutMs: durationMs(),
  timeoutMs: durationMs(1),
  niceIncrement: integer(0, 19),
  queueFullMs: durationMs(),
  heapLimitBytes: memoryBytes,
});

const moduleOptionsSchema = optionGroup({
  health: healthSchema,
  metrics: metricsSchema,
  offload: offloadSchema,
});

/**
 * Checks the options of `forRoot()` and fills in the defaults.
 *
 * @throws ClusterConfigurationError that names each key, the value seen and what is allowed.
 */
export function resolveModuleOptions(
  input: ClusterModuleOptions = {},
  env: NodeJS.ProcessEnv = process.env,
): ResolvedModuleOptions {
  const { health, metrics, offload } = validate(moduleOptionsSchema, input, 'module options');
  const overrides = readEnvironment(env);
  const resolved: ResolvedModuleOptions = {
    health:
      health === false
        ? false
        : {
            ...DEFAULTS.health,
            ...defined(health ?? {}),
          },
    metrics:
      metrics === false
        ? false
        : {
            ...DEFAULTS.metrics,
            ...({ registry: undefined } as { registry?: Registry | undefined }),
            ...defined(metrics ?? {}),
          },
    offload: {
      ...DEFAULTS.offload,
      ...({ module: undefined } as { module?: Class | undefined }),
      ...defined(offload ?? {}),
      ...defined({ mode: overrides.offload, threads: overrides.threads }),
    } as ResolvedModuleOptions['offload'],
  };
  refuseSamePath(resolved);
  return resolved;
}

function refuseSamePath({ health, metrics }: ResolvedModuleOptions): void {
  if (health === false || metrics === false) return;
  const taken = [health.path, `${health.path}/live`, `${health.path}/ready`];
  if (taken.includes(metrics.path)) {
    throw new ClusterConfigurationError(
      `invalid module options: health.path ("${health.path}") and metrics.path ("${metrics.path}") name the same endpoint; change one of them`,
    );
  }
}

/** `given` without the keys that are `undefined`: those have their defaults. */
function defined<T extends object>(given: T): { [K in keyof T]-?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]-?: Exclude<T[K], undefined>;
  };
}
