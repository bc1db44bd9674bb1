import { isIPv4 } from 'node:net';
import * as v from 'valibot';
import { ClusterConfigurationError } from '../errors/errors.js';
import { availableWorkers } from '../process/machine.js';
import { type ClusterOptions, clusterOptions } from './bootstrap.js';
import { type LogFormat, logFormat } from './log.js';
import {
  MAX_PORT,
  MAX_WORKERS,
  offloadVariables,
  overridden,
  portFromText,
  readVariables,
  validate,
} from './checks.js';

export * from './bootstrap.js';
export * from './log.js';
export { checkSlot, checkWorkerCount } from './checks.js';

/** Options with the defaults filled in: no value is `undefined`. */
export type InForce<T> = { readonly [K in keyof T]-?: Exclude<T[K], undefined> };

/** The address to listen on: a port on a host (`undefined` = all interfaces), or a unix socket. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly port: number; readonly host: string | undefined }
  | { readonly kind: 'unix'; readonly path: string };

type Checked = v.InferOutput<typeof clusterOptions>;

/** {@link ClusterOptions} with the defaults and the environment applied. Frozen. */
export interface ResolvedClusterOptions extends Omit<
  Checked,
  'port' | 'host' | 'path' | 'workers' | 'admin'
> {
  readonly address: ListenAddress;
  /** Whether the user gave the address. Otherwise it is the default, which only an app with an HTTP server uses. */
  readonly addressGiven: boolean;
  /** Number of workers at the start; 0 = the app runs in this process, without a cluster. */
  readonly workers: number;
  /** `undefined` = no admin listener. */
  readonly admin: ResolvedAdminOptions | undefined;
}

/** `AdminOptions` with the defaults and the environment applied. */
export interface ResolvedAdminOptions {
  readonly port: number;
  readonly host: string;
  /** Not enumerable, so that the token is not shown when the options are printed. `undefined` = no token. */
  readonly token: string | undefined;
}

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
  validate(clusterOptions, input, 'options'); // even options that a variable overrides
  readVariables(offloadVariables, env);
  const { admin, ...variables } = readVariables(clusterOptions, env) as Variables;
  const opensAdmin = admin && (input.admin !== undefined || admin.port !== undefined);
  const given = overridden(input, { ...variables, ...(opensAdmin && { admin }) });
  const { port, host, path, ...options } = validate(clusterOptions, given, 'options');
  const { workers } = options;
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
    admin: options.admin && resolveAdmin(options.admin),
  });
  refuseConflicts(input, resolved);
  return resolved;
}

/** Admin listener variables. Without the option `admin`, only the port variable opens the listener. */
type Variables = { readonly admin?: { readonly port?: number } };

function resolveAdmin({ port, host, token }: NonNullable<Checked['admin']>): ResolvedAdminOptions {
  const admin = Object.defineProperty({ port, host }, 'token', { value: token || undefined });
  return Object.freeze(admin as ResolvedAdminOptions);
}

/**
 * The value of `PORT`, the variable in which hosts and process managers pass a program its port. It
 * is the default of the option `port`. If the option is set, the variable is not read, so a wrong
 * value does no harm.
 */
function portIn(env: NodeJS.ProcessEnv): number | undefined {
  const schema = v.object({ PORT: v.optional(portFromText) });
  return validate(schema, { PORT: env['PORT'] || undefined }, 'environment').PORT;
}

/** The log format for the line about wrong options: from the environment, else from the options, else `text`. */
export function logFormatIn(input: unknown, env: NodeJS.ProcessEnv = process.env): LogFormat {
  const { log } = (input ?? {}) as ClusterOptions;
  const given: unknown[] = [env['CLUSTER_LOG_FORMAT'], log?.format];
  return given.find((format): format is LogFormat => v.is(logFormat, format)) ?? 'text';
}

/** The platform. Some balancing strategies do not work on every platform. */
const HERE = { system: process.platform as string, nodeVersion: process.versions.node };

/**
 * Refuses options that are valid separately but conflict with each other.
 *
 * @param options as the user wrote them, without the defaults.
 * @throws ClusterConfigurationError that names both options, the values seen and what to change.
 */
export function refuseConflicts(
  options: ClusterOptions,
  resolved: ResolvedClusterOptions,
  platform = HERE,
): void {
  const { expose, memory, watchdog, workers } = resolved;
  for (const key of ['port', 'host'] as const) {
    if (options.path !== undefined && options[key] !== undefined) {
      refuse(
        `set either path or ${key}, not both (path: "${options.path}", ${key}: ${options[key]})`,
      );
    }
  }
  if (memory.softLimitBytes < Infinity && memory.softLimitBytes >= memory.hardLimitBytes) {
    refuse(
      `memory.softLimitBytes (${memory.softLimitBytes}) must be below memory.hardLimitBytes (${memory.hardLimitBytes})`,
    );
  }
  if (memory.profile && (memory.softLimitBytes === Infinity || !watchdog)) {
    refuse('memory.profile needs memory.softLimitBytes and watchdog: true; set both');
  }
  // With `workers: 0` the single process has nothing to balance, and no primary.
  if (workers > 0) {
    if (platform.system === 'win32') {
      refuse(
        `workers is ${workers}, but Windows has no signals that drain or reload a cluster; use WSL or a container, or set workers: 0`,
      );
    }
    refuseBalancing(resolved, platform);
    refuseAdmin(options, resolved);
  } else if (expose === 'admin') {
    refuse(
      `expose is 'admin', but workers: 0 has no admin listener; set workers: 1 or expose: 'app'`,
    );
  }
}

function refuseAdmin(
  options: ClusterOptions,
  { address, admin, balancing, expose, workers }: ResolvedClusterOptions,
): void {
  if (admin === undefined) {
    if (expose === 'app') return;
    refuse(
      `expose is 'admin', but there is no admin listener; set admin: { port } or the variable CLUSTER_ADMIN_PORT`,
    );
  }
  if (address.kind === 'tcp' && admin.port !== 0) {
    const last = address.port + (balancing === 'ports' ? workers - 1 : 0);
    if (admin.port >= address.port && admin.port <= last) {
      refuse(
        `admin.port (${admin.port}) is a port of the app (port: ${address.port}${last > address.port ? ` to ${last}` : ''}); change one of them`,
      );
    }
  }
  const isLoopback =
    ['localhost', '::1'].includes(admin.host) ||
    (isIPv4(admin.host) && admin.host.startsWith('127.'));
  if (isLoopback || admin.token !== undefined || options.admin?.token === false) return;
  refuse(
    `admin.host ("${admin.host}") can be reached from other machines, but admin.token is not set; set admin.token or the variable CLUSTER_ADMIN_TOKEN, or set token: false to allow access without a token`,
  );
}

/** @throws ClusterConfigurationError if the address or platform does not allow the balancing strategy. */
export function refuseBalancing(
  options: Pick<ResolvedClusterOptions, 'address' | 'balancing' | 'workers'>,
  { system, nodeVersion } = HERE,
): void {
  const { address, balancing, workers } = options;
  if (balancing !== 'reuse-port' && balancing !== 'ports') return;
  if (address.kind === 'unix') {
    refuse(
      `balancing '${balancing}' needs a port, but path is "${address.path}"; set port, or balancing: 'shared'`,
    );
  } else if (balancing === 'ports') {
    if (address.port === 0) {
      refuse(
        "balancing 'ports' needs a first port, but port is 0; set a port: the worker of slot k listens on port + k",
      );
    }
    if (address.port + workers - 1 > MAX_PORT) {
      refuse(
        `balancing 'ports' with port ${address.port} and ${workers} workers exceeds port ${MAX_PORT}; lower the port or the number of workers`,
      );
    }
  } else if (system !== 'linux' || !passesReusePortOn(nodeVersion)) {
    refuse(
      `balancing 'reuse-port' needs Linux and Node 22.12 or later, but this is Node ${nodeVersion} on ${system}; set balancing to 'shared', the default`,
    );
  }
}

/** Node 22.12 and 23.1 are the first versions that pass SO_REUSEPORT on to libuv. */
function passesReusePortOn(nodeVersion: string): boolean {
  const [major = 0, minor = 0] = nodeVersion.split('.').map(Number);
  if (major === 22) return minor >= 12;
  return major === 23 ? minor >= 1 : major > 23;
}

function refuse(message: string): never {
  throw new ClusterConfigurationError(`invalid options: ${message}`);
}
