import { ClusterConfigurationError } from '../errors/index.js';
import { availableWorkers } from './available-workers.js';
import type {
  ClusterOptions,
  HeartbeatOptions,
  ListenAddress,
  ResolvedClusterOptions,
} from './cluster-options.interface.js';
import { DEFAULTS } from './defaults.js';
import { readEnvironment } from './environment.js';
import { clusterOptionsSchema, MAX_WORKERS } from './options.schema.js';
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
  refuseConflicts(options);
  const workers = overrides.workers ?? options.workers ?? DEFAULTS.workers;
  return Object.freeze({
    address: Object.freeze(resolveAddress(options)),
    workers: workers === 'auto' ? Math.min(autoWorkers(), MAX_WORKERS) : workers,
    balancing: overrides.balancing ?? options.balancing ?? DEFAULTS.balancing,
    readyTimeoutMs: options.readyTimeoutMs ?? DEFAULTS.readyTimeoutMs,
    restart: withDefaults(DEFAULTS.restart, options.restart),
    heartbeat: resolveHeartbeat(options.heartbeat),
    watchdog: options.watchdog ?? DEFAULTS.watchdog,
    memory: withDefaults(DEFAULTS.memory, options.memory),
    recycle: withDefaults(DEFAULTS.recycle, options.recycle),
    reload: withDefaults(DEFAULTS.reload, options.reload),
    shutdown: withDefaults(DEFAULTS.shutdown, options.shutdown),
    logFormat: overrides.logFormat ?? DEFAULTS.logFormat,
  });
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

function refuseConflicts(options: ClusterOptions): void {
  const refuse = (message: string): never => {
    throw new ClusterConfigurationError(`invalid options: ${message}`);
  };
  for (const key of ['port', 'host'] as const) {
    if (options.path !== undefined && options[key] !== undefined) {
      refuse(
        `path and ${key} exclude each other (path: "${options.path}", ${key}: ${options[key]}); give one of them`,
      );
    }
  }
  const restart = withDefaults(DEFAULTS.restart, options.restart);
  if (restart.backoffMs > restart.maxBackoffMs) {
    refuse(
      `restart.backoffMs (${restart.backoffMs}) is above restart.maxBackoffMs (${restart.maxBackoffMs}); lower the first or raise the second`,
    );
  }
  const memory = withDefaults(DEFAULTS.memory, options.memory);
  if (memory.softLimitBytes < Infinity && memory.softLimitBytes >= memory.hardLimitBytes) {
    refuse(
      `memory.softLimitBytes (${memory.softLimitBytes}) must be below memory.hardLimitBytes (${memory.hardLimitBytes})`,
    );
  }
  const heartbeat = resolveHeartbeat(options.heartbeat);
  if (heartbeat.timeoutMs <= heartbeat.intervalMs) {
    refuse(
      `heartbeat.timeoutMs (${heartbeat.timeoutMs}) must be above heartbeat.intervalMs (${heartbeat.intervalMs})`,
    );
  }
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
