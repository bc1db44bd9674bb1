import type { ClusterLink } from '../contract/snapshot/index.js';
import { currentLink } from '../contract/snapshot/current-link.js';

/** The link that `bootstrap()` set up in this process, or a new link for a single process. */
export async function linkOfProcess(): Promise<ClusterLink> {
  const link = currentLink();
  if (link !== undefined) return link;
  const { ProcessLink } = await import('../worker/link/process-link.js');
  return new ProcessLink();
}
