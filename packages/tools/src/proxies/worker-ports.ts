import * as v from 'valibot';
import { ClusterConfigurationError, ClusterUnreachableError } from '../../contract/errors/index.js';
import { BALANCING_STRATEGIES, MAX_PORT, MAX_WORKERS } from '../../contract/options/index.js';
import { reasonOf } from '../app/endpoints.js';

/** How long to wait for the health endpoint. The worker that gets the request may be blocked. */
const TIMEOUT_MS = 5_000;

const INSTEAD = 'or describe it with --port and --workers';
const NO_CLUSTER = `its answer does not show a cluster. Give the URL of its health endpoint, which has to show details (health.details), ${INSTEAD}`;

/** The used part of `/health`. The ports go into scripts, so only numbers are accepted. */
const healthSchema = v.object({
  details: v.object({
    cluster: v.object({
      balancing: v.picklist([...BALANCING_STRATEGIES, 'none']),
      desired: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_WORKERS)),
      ports: v.optional(
        v.array(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_PORT))),
        [],
      ),
    }),
  }),
});

/**
 * The ports of the workers of a cluster that does not run yet.
 *
 * @throws ClusterConfigurationError if a port would be out of range.
 */
export function describedPorts(port: number, workers: number): readonly number[] {
  if (port + workers - 1 > MAX_PORT) {
    throw new ClusterConfigurationError(
      `${workers} workers from port ${port} on go beyond port ${MAX_PORT}; lower one of them`,
    );
  }
  return Array.from({ length: workers }, (_, slot) => port + slot);
}

/**
 * The ports of the workers of the cluster whose `/health` is at `url`.
 *
 * @throws ClusterUnreachableError if nothing answers there, or the answer does not show a cluster.
 * @throws ClusterConfigurationError if the cluster's workers have no ports of their own.
 */
export async function runningPorts(url: string): Promise<readonly number[]> {
  const health = v.safeParse(healthSchema, await readJson(url));
  if (!health.success) throw new ClusterUnreachableError(url, NO_CLUSTER);
  const { balancing, desired, ports } = health.output.details.cluster;
  if (balancing === 'none') {
    throw new ClusterConfigurationError(
      `the app at ${url} is one process without workers; start it with CLUSTER_BALANCING=ports and at least one worker`,
    );
  }
  if (balancing !== 'ports') {
    throw new ClusterConfigurationError(
      `the cluster at ${url} runs with balancing '${balancing}', in which workers have no ports of their own; start it with CLUSTER_BALANCING=ports`,
    );
  }
  if (ports.length < desired) throw new ClusterUnreachableError(url, NO_CLUSTER);
  // After a scale-down the list also has the ports of removed slots, which the other workers serve.
  return ports.slice(0, desired);
}

async function readJson(url: string): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    throw new ClusterUnreachableError(
      url,
      `${reasonOf(error)}. Start the cluster, give its --url, ${INSTEAD}`,
    );
  }
  // The body of a 503 is read too: a cluster that is not healthy yet already has ports.
  return response.json().catch(() => undefined);
}
