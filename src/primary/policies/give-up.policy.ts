/** What the decision to give up rests on. */
export interface ClusterCondition {
  /** Whether any worker has ever become ready. */
  readonly everReady: boolean;
  /** Failures of all slots since the start. */
  readonly failures: number;
  readonly slots: readonly SlotCondition[];
}

export interface SlotCondition {
  /** In a crash loop. */
  readonly degraded: boolean;
  readonly ready: boolean;
  /** None of its workers has failed: its first may still become ready. */
  readonly untried: boolean;
}

/**
 * Why the cluster cannot go on, or `undefined` while it can: nothing has ever
 * become ready after two tries a slot, or every slot is in a crash loop and
 * none serves. Slots share the tries, but one that fails fast does not use up
 * the first of another: that ends by itself, at `readyTimeoutMs` at the latest.
 */
export function reasonToGiveUp(cluster: ClusterCondition): string | undefined {
  const { everReady, failures, slots } = cluster;
  const allTried = slots.every(({ untried }) => !untried);
  if (!everReady && allTried && failures >= 2 * slots.length) {
    return `no worker became ready in ${failures} attempts`;
  }
  if (slots.every((slot) => slot.degraded && !slot.ready)) {
    return `every worker is in a crash loop`;
  }
  return undefined;
}
