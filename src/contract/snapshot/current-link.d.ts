import type { ClusterLink } from './cluster-link.js';
/** Injection token of this process's `ClusterLink`. */
export declare const CLUSTER_LINK: unique symbol;
export declare function setCurrentLink(link: ClusterLink | undefined): void;
/** The link that `bootstrap()` set up in this process; `undefined` if it was not called. */
export declare function currentLink(): ClusterLink | undefined;
