import type { ModuleRef } from '@nestjs/core';
import { CLUSTER_LINK, type ClusterLink } from '../../contract/snapshot/cluster-link.js';
import { currentLink } from '../../contract/snapshot/current-link.js';
import { SoloLink } from '../../worker/link/solo-link.js';

/** A provider of any module of the app; `undefined` where it has none, as without `ClusterModule`. */
export function providerOfApp<T>(moduleRef: ModuleRef, token: unknown): T | undefined {
  try {
    return moduleRef.get<T>(token as string, { strict: false });
  } catch {
    return undefined;
  }
}

/** The link of its `ClusterModule`, else the link of its process, else one that answers for it alone. */
export function linkOfApp(moduleRef: ModuleRef): ClusterLink {
  return providerOfApp<ClusterLink>(moduleRef, CLUSTER_LINK) ?? currentLink() ?? new SoloLink();
}
