/** Injection token of this process's `ClusterLink`. */
export const CLUSTER_LINK = Symbol('nestjs-cluster.link');
