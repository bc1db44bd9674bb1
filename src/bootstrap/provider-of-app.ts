import type { ModuleRef } from '@nestjs/core';
import { CLUSTER_LINK, type ClusterLink } from '../contract/snapshot/index.js';
import { linkOfThisProcess } from './current-link.js';

/** A provider of any module of the app; `undefined` where it has none, as without `ClusterModule`. */
export function providerOfApp<T>(moduleRef: ModuleRef, token: unknown): T | undefined {
  try {
    return moduleRef.get<T>(token as string, { strict: false });
  } catch {
    return undefined;
  }
}

/** The link of its `ClusterModule`, else that of its process. */
export function linkOfApp(moduleRef: ModuleRef): ClusterLink {
  return providerOfApp<ClusterLink>(moduleRef, CLUSTER_LINK) ?? linkOfThisProcess();
}
