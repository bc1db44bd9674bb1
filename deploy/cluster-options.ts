import type { ClusterOptions } from 'nestjs-cluster';

/** Options of `bootstrap()` to which the manifests of kubernetes/ fit. Their variables set the rest. */
export const clusterOptions: ClusterOptions = {
  port: 3000,
  // The app's own port, which others reach, shows no metrics. CLUSTER_ADMIN_PORT opens the port that does.
  expose: 'admin',
};
