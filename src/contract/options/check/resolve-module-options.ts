import * as v from 'valibot';
import { ClusterConfigurationError } from '../../errors/index.js';
import { readEnvironment } from './environment.js';
import type {
  Class,
  ClusterModuleOptions,
  HealthIndicatorEntry,
  ResolvedModuleOptions,
} from '../module-options.interface.js';
import type { MetricsRegistry } from '../../snapshot/index.js';
import { MAX_THREADS, threadsSchema } from './options.schema.js';
import {
  durationMs,
  flag,
  integer,
  option,
  optionGroup,
  optionGroupOrFalse,
  validate,
} from './validate.js';

const EXPECTED_PATH = "a path that begins with '/', without parameters, wildcards or a query";
const EXPECTED_BUCKETS = 'a rising list of at least one positive number of seconds';
const EXPECTED_MIN_READY = "'all', a whole number from 1, or a share above 0 and below 1";
const EXPECTED_INDICATORS = 'a list of functions and of injectable classes with check()';

const DEFAULT_BUCKETS = Object.freeze([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]);

const path = v.pipe(v.string(EXPECTED_PATH), v.regex(/^(\/[\w.~-]+)+$/, EXPECTED_PATH));

const minReady = v.union(
  [
    v.literal('all'),
    v.pipe(v.number(), v.integer(), v.minValue(1)),
    v.pipe(v.number(), v.gtValue(0), v.ltValue(1)),
  ],
  EXPECTED_MIN_READY,
);

const indicators = v.array(
  v.custom<HealthIndicatorEntry>((entry) => typeof entry === 'function', EXPECTED_INDICATORS),
  EXPECTED_INDICATORS,
);

const buckets = v.pipe(
  v.array(
    v.pipe(v.number(EXPECTED_BUCKETS), v.finite(EXPECTED_BUCKETS), v.gtValue(0, EXPECTED_BUCKETS)),
    EXPECTED_BUCKETS,
  ),
  v.minLength(1, EXPECTED_BUCKETS),
  v.check(
    (bounds) => bounds.every((bound, i) => i === 0 || bound > bounds[i - 1]!),
    EXPECTED_BUCKETS,
  ),
);

// Checks the method that is used, not the class, so that a registry of either client passes.
const registry = v.custom<MetricsRegistry>(
  (value) => typeof (value as MetricsRegistry | null)?.getMetricsAsJSON === 'function',
  'a Registry of prom-client or @prometheus-io/client',
);

/** Also part of the options of `forRootAsync()`. */
export const offloadModule = v.optional(
  v.custom<Class>((value) => typeof value === 'function', 'a class with @Module()'),
);

/** The options that a user may pass to `forRoot()`, with their defaults. */
export const moduleOptionsSchema = optionGroup({
  health: optionGroupOrFalse({
    path: option(path, '/health'),
    details: option(flag, true),
    minReady: option(minReady, 1),
    indicators: option(indicators, Object.freeze([])),
  }),
  metrics: optionGroupOrFalse({
    path: option(path, '/metrics'),
    buckets: option(buckets, DEFAULT_BUCKETS),
    registry: v.optional(registry),
    perWorker: option(flag, false),
  }),
  offload: optionGroup({
    threads: option(threadsSchema, 'auto'),
    minThreads: option(integer(0, MAX_THREADS), 0),
    module: offloadModule,
    maxQueue: option(integer(0, 1_000_000), 10_000),
    timeoutMs: option(durationMs(1), 30_000),
  }),
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
  const { offload, ...options } = validate(moduleOptionsSchema, input, 'module options');
  const { offload: given, threads = offload.threads } = readEnvironment(env);
  const mode = given ?? (isVitest(env) ? 'vitest' : 'threads');
  const resolved: ResolvedModuleOptions = { ...options, offload: { ...offload, mode, threads } };
  refuseSamePath(resolved);
  return resolved;
}

/** Whether this is the process of a test. A program that the test starts inherits only the variable. */
function isVitest(env: NodeJS.ProcessEnv): boolean {
  return env['VITEST'] !== undefined && '__vitest_worker__' in globalThis;
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
