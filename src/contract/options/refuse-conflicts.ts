import { isIPv4 } from 'node:net';
import { ClusterConfigurationError } from '../errors/index.js';
import type { ClusterOptions } from './bootstrap.js';
import type { ResolvedClusterOptions } from './resolve.js';
import { MAX_PORT } from './schema.js';

/** Some balancing strategies do not work on every platform. */
const HERE = { system: process.platform as string, nodeVersion: process.versions.node };
export type Platform = typeof HERE;

/**
 * Refuses combinations of options that are valid separately but conflict with each other.
 *
 * @param options as the user wrote them, without the defaults.
 * @throws ClusterConfigurationError that names both options, the values seen and what to change.
 */
export function refuseConflicts(
  options: ClusterOptions,
  resolved: ResolvedClusterOptions,
  platform: Platform = HERE,
): void {
  const { expose, memory, workers } = resolved;
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
  // With `workers: 0` the single process has nothing to balance, and no primary.
  if (workers > 0) {
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
    `admin.host ("${admin.host}") can be reached from other machines, but admin.token is not set; set admin.token or the variable CLUSTER_ADMIN_TOKEN, or set token: false to let everyone read`,
  );
}

export function refuseBalancing(
  options: Pick<ResolvedClusterOptions, 'address' | 'balancing' | 'workers'>,
  { system, nodeVersion }: Platform = HERE,
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
