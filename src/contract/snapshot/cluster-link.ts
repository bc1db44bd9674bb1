import type { ClusterPort } from './cluster.port.js';
import type { LifecyclePort } from './lifecycle.port.js';
import type { RequestsPort } from './requests.port.js';
import type { SharedStatePort } from './shared-state.port.js';

/** Injection token of this process's `ClusterLink`. */
export const CLUSTER_LINK = Symbol('nestjs-cluster.link');

/**
 * A Nest app's only link to its cluster. The link of a worker asks the primary. In a process
 * without a primary, the link answers by itself. A consumer takes only the port that it needs, so
 * that a test fakes only that port.
 */
export interface ClusterLink extends ClusterPort, RequestsPort, LifecyclePort, SharedStatePort {}
