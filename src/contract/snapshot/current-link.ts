import type { ClusterLink } from './cluster-link.js';

/** Injection token of this process's `ClusterLink`. */
export const CLUSTER_LINK = Symbol('nestjs-cluster.link');

/**
 * The link of this process is stored on `globalThis` under this key. `forRoot()` runs while the
 * app's classes are declared, so a link cannot be passed to it. Two copies of this package share
 * one `globalThis`. A thread has its own `globalThis`, and therefore no link.
 */
const KEY = Symbol.for('nestjs-cluster.link');

const holder = globalThis as { [KEY]?: ClusterLink | undefined };

export function setCurrentLink(link: ClusterLink | undefined): void {
  holder[KEY] = link;
}

/** The link that `bootstrap()` set up in this process; `undefined` if it was not called. */
export function currentLink(): ClusterLink | undefined {
  return holder[KEY];
}
