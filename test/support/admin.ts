import type { ClusterProcess } from './cluster-process.js';
import type { HealthBody } from './health.js';
import { getJson, request } from './http-client.js';

/** The URL of a cluster's admin listener, from the cluster's `listening` event. */
export function adminUrlOf(cluster: ClusterProcess): string {
  return String(cluster.all('listening')[0]?.['adminUrl']);
}

/** The statuses of a cluster's `/health/live` and `/health/ready`, and the reason it gives. */
export async function probe(url: string) {
  const { status: live } = await request(url, '/health/live');
  const { status: ready, body } = await getJson<HealthBody>(url, '/health/ready');
  return { live, ready, reason: body.details.cluster.reason };
}
