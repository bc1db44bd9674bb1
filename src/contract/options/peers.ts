import { ClusterConfigurationError } from '../errors/errors.js';
import type { PrometheusClient } from '../snapshot/types.js';

const NEW_CLIENT = '@prometheus-io/client';
const OLD_CLIENT = 'prom-client';

/** The start of the error about a missing package in Node, @swc-node/register and Vitest. */
const NOT_FOUND = /^(?:Cannot find|Could not resolve) [^'"]*['"]([^'"]+)/;

/**
 * Loads the installed Prometheus clients, the newer one first.
 *
 * @throws ClusterConfigurationError if there is none.
 */
export async function loadPrometheusClients(): Promise<readonly PrometheusClient[]> {
  const clients = await Promise.all([
    // @ts-expect-error: not installed here, an optional peer for Node 22 and later
    loaded(NEW_CLIENT, import(/* webpackIgnore: true */ '@prometheus-io/client')),
    loaded(OLD_CLIENT, import('prom-client')),
  ]);
  const found = clients.filter((client) => client !== undefined) as unknown as PrometheusClient[];
  if (found.length > 0) return found;
  return refuseMissing(
    'metrics',
    `a Prometheus client, but none is installed; run npm install ${OLD_CLIENT}, or ${NEW_CLIENT} on Node 22 or later`,
  );
}

/** @returns `undefined` if the package itself (not a dependency of it) is not installed. */
export async function loaded<T>(name: string, module: Promise<T>): Promise<T | undefined> {
  try {
    return await module;
  } catch (error) {
    // TypeScript loaders and bundlers throw their own errors, without Node's `code`.
    if (NOT_FOUND.exec((error as Error).message)?.[1] === name) return undefined;
    throw error;
  }
}

/** @throws ClusterConfigurationError always */
export function refuseMissing(group: string, needs: string): never {
  throw new ClusterConfigurationError(
    `${group} of ClusterModule needs ${needs}; or set ${group}: false in forRoot()`,
  );
}
