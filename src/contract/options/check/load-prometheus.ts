import type { PrometheusClient } from '../../snapshot/index.js';
import { loaded, refuse } from './load-peer.js';

const NEW_CLIENT = '@prometheus-io/client';
const OLD_CLIENT = 'prom-client';

/**
 * Loads the Prometheus clients that are installed, the newer first.
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
  return refuse(
    'metrics',
    `a Prometheus client, and none is installed; run npm install ${OLD_CLIENT}, or ${NEW_CLIENT} with Node 22 and later`,
  );
}
