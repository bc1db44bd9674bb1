import type { ClusterLink } from './cluster-link.js';

/** Injection token of this process's `ClusterLink`. */
export const CLUSTER_LINK = Symbol('nestjs-cluster.link');

const LINK = Symbol.for('nestjs-cluster.link');
const APP = Symbol.for('nestjs-cluster.app-import');

type AppImport = (context: never) => unknown;

/** On `globalThis`, because nothing can be passed to `forRoot()`, and for two copies of this package. */
const holder = globalThis as { [LINK]?: ClusterLink | undefined; [APP]?: AppImport };

export function setCurrentLink(link: ClusterLink | undefined): void {
  holder[LINK] = link;
}

/** The link that `bootstrap()` set up in this process; `undefined` if it was not called. */
export function currentLink(): ClusterLink | undefined {
  return holder[LINK];
}

export function noteAppImport(importApp: AppImport): void {
  holder[APP] = importApp;
}

/**
 * The function passed to `bootstrap()`: in a process if it imports a file, in a thread always. A
 * thread may have to call it, because a bundle evaluates the code of the app only then.
 */
export function appImport(): AppImport | undefined {
  return holder[APP];
}
