import * as v from 'valibot';
import { availableWorkers } from './available-workers.js';
import type {
  ClusterOptions,
  HeartbeatOptions,
  ListenAddress,
  ResolvedClusterOptions,
} from './cluster-options.interface.js';
import { DEFAULTS } from './defaults.js';
import { readEnvironment } from './environment.js';
import type { LogFormat } from './log-options.interface.js';
import { clusterOptionsSchema, logFormatSchema, MAX_WORKERS } from './options.schema.js';
import { refuseConflicts } from './refuse-conflicts.js';
import { integer, validate } from './validate.js';

/**
 * Checks what the user wrote, lets the environment override it, and fills in
 * the defaults, key by key: `undefined` is the default everywhere.
 *
 * @throws ClusterConfigurationError that names each key, the value seen and what is allowed.
 */
export function resolveOptions(
  input: ClusterOptions = {},
  env: NodeJS.ProcessEnv = process.env,
  autoWorkers: () => number = availableWorkers,
): ResolvedClusterOptions {
  const options = validate(clusterOptionsSchema, input, 'options');
  const overrides = readEnvironment(env);
  const workers = overrides.workers ?? options.workers ?? DEFAULTS.workers;
  const resolved: ResolvedClusterOptions = Object.freeze({
    address: Object.freeze(resolveAddress(options)),
    workers: workers === 'auto' ? Math.min(autoWorkers(), MAX_WORKERS) : workers,
    balancing: overrides.balancing ?? options.balancing ?? DEFAULTS.balancing,
    rebalance: options.rebalance ?? DEFAULTS.rebalance,
    readyTimeoutMs: options.readyTimeoutMs ?? DEFAULTS.readyTimeoutMs,
    restart: withDefaults(DEFAULTS.restart, options.restart),
    heartbeat: resolveHeartbeat(options.heartbeat),
    watchdog: options.watchdog ?? DEFAULTS.watchdog,
    expressPrototypes: options.expressPrototypes ?? DEFAULTS.expressPrototypes,
    memory: withDefaults(DEFAULTS.memory, options.memory),
    recycle: withDefaults(DEFAULTS.recycle, options.recycle),
    reload: withDefaults(DEFAULTS.reload, options.reload),
    shutdown: withDefaults(DEFAULTS.shutdown, options.shutdown),
    admin:
      options.admin === undefined
        ? undefined
        : Object.freeze({
            port: options.admin.port,
            host: options.admin.host ?? DEFAULTS.admin.host,
          }),
    log: Object.freeze({
      format: overrides.log.format ?? options.log?.format ?? DEFAULTS.log.format,
      level: overrides.log.level ?? options.log?.level ?? DEFAULTS.log.level,
      write: options.log?.write,
    }),
    bootLogs: overrides.bootLogs ?? DEFAULTS.bootLogs,
  });
  refuseConflicts(options, resolved);
  return resolved;
}

/** The format for a line that says what is wrong with options, as far as they can be read. */
export function logFormatIn(input: unknown, env: NodeJS.ProcessEnv = process.env): LogFormat {
  const { log } = (input ?? {}) as ClusterOptions;
  const given: unknown[] = [env['CLUSTER_LOG_FORMAT'], log?.format];
  return (
    given.find((format): format is LogFormat => v.is(logFormatSchema, format)) ??
    DEFAULTS.log.format
  );
}

/** @throws ClusterConfigurationError for what is no number of workers to scale to. */
export function checkWorkerCount(workers: number): number {
  return validate(integer(1, MAX_WORKERS), workers, 'number of workers');
}

function resolveAddress(options: ClusterOptions): ListenAddress {
  return options.path === undefined
    ? { kind: 'tcp', port: options.port ?? DEFAULTS.port, host: options.host }
    : { kind: 'unix', path: options.path };
}

function resolveHeartbeat(heartbeat: HeartbeatOptions | false | undefined) {
  return heartbeat === false
    ? Object.freeze({ ...DEFAULTS.heartbeat, timeoutMs: Infinity })
    : withDefaults(DEFAULTS.heartbeat, heartbeat);
}

/** `defaults` with every key of `given` that is not `undefined`. */
function withDefaults<T extends object>(
  defaults: T,
  given: { [K in keyof T]?: T[K] | number | undefined } | undefined,
): Readonly<{ [K in keyof T]: number }> {
  const entries = Object.entries(given ?? {}).filter(([, value]) => value !== undefined);
  return Object.freeze({ ...defaults, ...Object.fromEntries(entries) }) as Readonly<{
    [K in keyof T]: number;
  }>;
}
