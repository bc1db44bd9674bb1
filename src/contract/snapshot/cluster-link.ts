import type { ClusterPort } from './cluster.port.js';
import type { LifecyclePort } from './lifecycle.port.js';
import type { RequestsPort } from './requests.port.js';
import type { SharedStatePort } from './shared-state.port.js';

/** Injection token of this process's `ClusterLink`. */
export const CLUSTER_LINK = Symbol('nestjs-cluster.link');

/**
 * A Nest app's only link to its cluster. A worker asks its primary; a process without one answers
 * for itself. A consumer asks for the port that it needs, so that a test fakes that port alone.
 */
export interface ClusterLink extends ClusterPort, RequestsPort, LifecyclePort, SharedStatePort {}
