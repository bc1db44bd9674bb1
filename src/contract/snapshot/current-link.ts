import type { ClusterLink } from './cluster-link.js';

/**
 * How an app finds the process that it runs in: `forRoot()` is called while
 * the app's classes are being declared, with nothing to pass a link through.
 * On `globalThis`, because two copies of this package are still one process.
 * A thread has a `globalThis` of its own, and so no link.
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
