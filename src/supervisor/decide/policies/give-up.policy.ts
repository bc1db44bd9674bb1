/** The facts by which the cluster gives up. */
export interface ClusterCondition {
  /** Whether any worker has ever become ready, and its threads could load. */
  readonly everReady: boolean;
  /** Whether any was ready but for its threads. */
  readonly everServed: boolean;
  /** Failures of all slots since the start. */
  readonly failures: number;
  readonly slots: readonly {
    /** None of its workers has failed: its first may still become ready. */
    readonly untried: boolean;
  }[];
}

/**
 * Why the cluster cannot go on, or `undefined` while it can: nothing has ever
 * become ready after two tries a slot. Slots share the tries, but one that
 * fails fast does not use up the first of another: that ends by itself, at
 * `readyTimeoutMs` at the latest. A cluster that has served never gives up: it
 * serves again when the cause is gone.
 */
export function reasonToGiveUp(cluster: ClusterCondition): string | undefined {
  const { everReady, everServed, failures, slots } = cluster;
  if (everReady || failures < 2 * slots.length || slots.some(({ untried }) => untried)) {
    return undefined;
  }
  return everServed
    ? `no worker stayed up until its threads had loaded, in ${failures} attempts`
    : `no worker became ready in ${failures} attempts`;
}
