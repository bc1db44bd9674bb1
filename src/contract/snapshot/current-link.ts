import type { ClusterLink } from './cluster-link.js';

/** Injection token of this process's `ClusterLink`. */
export const CLUSTER_LINK = Symbol('nestjs-cluster.link');

/** Stored on `globalThis`, because `forRoot()` takes no link and the app may load two copies of this package. */
const KEY = Symbol.for('nestjs-cluster.link');

const holder = globalThis as { [KEY]?: ClusterLink | undefined };

export function setCurrentLink(link: ClusterLink | undefined): void {
  holder[KEY] = link;
}

/** The link that `bootstrap()` set up in this process; `undefined` if it was not called. */
export function currentLink(): ClusterLink | undefined {
  return holder[KEY];
}
