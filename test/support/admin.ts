import type { ClusterProcess } from './cluster-process.js';
import type { HealthBody } from './health.js';
import { getJson, request } from './http-client.js';

/** Where the admin listener of a cluster is, once it said so. */
export function adminUrlOf(cluster: ClusterProcess): string {
  return String(cluster.all('listening')[0]?.['adminUrl']);
}

/** What `/health/live` and `/health/ready` of a cluster say, and why. */
export async function probe(url: string) {
  const { status: live } = await request(url, '/health/live');
  const { status: ready, body } = await getJson<HealthBody>(url, '/health/ready');
  return { live, ready, reason: body.details.cluster.reason };
}
