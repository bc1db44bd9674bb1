import type { ClusterOptions } from 'nestjs-cluster';

/** Options of `bootstrap()` to which the manifests of kubernetes/ fit. */
export const clusterOptions: ClusterOptions = {
  port: 3000,
  // Longer than an address takes to leave the Service everywhere.
  shutdown: { lameDuckMs: 10_000 },
  // For Prometheus; it asks for CLUSTER_ADMIN_TOKEN.
  admin: { port: 9464, host: '0.0.0.0' },
  // The app's own port, which others reach, shows no metrics.
  expose: 'admin',
};
