import * as v from 'valibot';
import { availableWorkers } from './available-workers.js';
import type { ClusterOptions } from '../cluster-options.interface.js';
import { portIn, readEnvironment } from './environment.js';
import type { LogFormat } from '../log-options.interface.js';
import type {
  ResolvedAdminOptions,
  ResolvedClusterOptions,
} from '../resolved-options.interface.js';
import { ADMIN_HOST, clusterOptionsSchema, logFormatSchema } from './options.schema.js';
import { refuseConflicts } from './refuse-conflicts.js';
import { integer, validate, MAX_WORKERS } from './validate.js';

/**
 * Checks the options of `bootstrap()`, fills in the default of each key that is `undefined`, and
 * lets the environment override the options.
 *
 * @throws ClusterConfigurationError that names each key, the value seen and what is allowed.
 */
export function resolveOptions(
  input: ClusterOptions = {},
  env: NodeJS.ProcessEnv = process.env,
  autoWorkers: () => number = availableWorkers,
): ResolvedClusterOptions {
  const { port, host, path, ...options } = validate(clusterOptionsSchema, input, 'options');
  const overrides = readEnvironment(env);
  const workers = overrides.workers ?? options.workers;
  const resolved: ResolvedClusterOptions = Object.freeze({
    ...options,
    address: Object.freeze(
      path === undefined
        ? { kind: 'tcp', port: input.port === undefined ? (portIn(env) ?? port) : port, host }
        : { kind: 'unix', path },
    ),
    // The variable PORT does not count as a given address: a host may set it for every program.
    addressGiven: (input.port ?? host ?? path) !== undefined,
    workers: workers === 'auto' ? Math.min(autoWorkers(), MAX_WORKERS) : workers,
    balancing: overrides.balancing ?? options.balancing,
    hangTimeoutMs: options.hangTimeoutMs || Infinity,
    control: options.control || undefined,
    log: overridden(options.log, overrides.log),
    memory: overridden(options.memory, overrides.memory),
    shutdown: overridden(options.shutdown, overrides.shutdown),
    admin: resolveAdmin(options.admin, overrides.admin),
    warnings: Object.freeze({
      shown: options.warnings !== false,
      ignore: options.warnings ? options.warnings.ignore : [],
    }),
  });
  refuseConflicts(input, resolved);
  return resolved;
}

/** A group of options, in which the variables that are set replace the values. */
function overridden<T extends object>(
  group: T,
  variables: { readonly [K in keyof T]?: T[K] | undefined },
): T {
  const set = Object.entries(variables).filter(([, value]) => value !== undefined);
  return Object.freeze({ ...group, ...Object.fromEntries(set) });
}

/** The admin listener: an option or a variable gives its port. */
function resolveAdmin(
  options: v.InferOutput<typeof clusterOptionsSchema>['admin'],
  overrides: ReturnType<typeof readEnvironment>['admin'],
): ResolvedAdminOptions | undefined {
  const port = overrides.port ?? options?.port;
  if (port === undefined) return undefined;
  const admin = { port, host: overrides.host ?? options?.host ?? ADMIN_HOST };
  const token = overrides.token ?? (options?.token || undefined);
  Object.defineProperty(admin, 'token', { value: token });
  return Object.freeze(admin as ResolvedAdminOptions);
}

/** The log format for the line about wrong options: from the environment, else from the options, else `text`. */
export function logFormatIn(input: unknown, env: NodeJS.ProcessEnv = process.env): LogFormat {
  const { log } = (input ?? {}) as ClusterOptions;
  const given: unknown[] = [env['CLUSTER_LOG_FORMAT'], log?.format];
  return given.find((format): format is LogFormat => v.is(logFormatSchema, format)) ?? 'text';
}

/** @throws ClusterConfigurationError if a cluster cannot have that slot. */
export function checkSlot(slot: number): number {
  return validate(integer(0, MAX_WORKERS - 1), slot, 'slot');
}

/** @throws ClusterConfigurationError if a cluster cannot have that number of workers. */
export function checkWorkerCount(workers: number): number {
  return validate(integer(1, MAX_WORKERS), workers, 'number of workers');
}
