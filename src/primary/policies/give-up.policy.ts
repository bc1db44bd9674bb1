/** What the decision to give up rests on. */
export interface ClusterCondition {
  /** Whether any worker has ever become ready. */
  readonly everReady: boolean;
  /** Failures of all slots since the start. */
  readonly failures: number;
  readonly slots: readonly { readonly degraded: boolean; readonly ready: boolean }[];
}

/**
 * Why the cluster cannot go on, or `undefined` while it can: nothing has ever
 * become ready after two tries a slot, or every slot is in a crash loop and
 * none serves.
 */
export function reasonToGiveUp(cluster: ClusterCondition): string | undefined {
  const { everReady, failures, slots } = cluster;
  if (!everReady && failures >= 2 * slots.length) {
    return `no worker became ready in ${failures} attempts`;
  }
  if (slots.every((slot) => slot.degraded && !slot.ready)) {
    return `every worker is in a crash loop`;
  }
  return undefined;
}
