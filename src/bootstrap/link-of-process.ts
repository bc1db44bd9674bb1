import type { ClusterLink } from '../contract/snapshot/index.js';
import { currentLink } from '../contract/snapshot/current-link.js';

/** The link that `bootstrap()` set up in this process, or a new link for a single process. */
export async function linkOfProcess(): Promise<ClusterLink> {
  const link = currentLink();
  if (link !== undefined) return link;
  const { SoloLink } = await import('../worker/link/solo-link.js');
  return new SoloLink();
}
