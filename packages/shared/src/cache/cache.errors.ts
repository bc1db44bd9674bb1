import { ClusterError } from 'nestjs-cluster/bootstrap';
import { show } from '../options.js';

/** The hub has not confirmed a `set()`, `delete()` or `clear()`, so its outcome is unknown. */
export class ClusterCacheUnconfirmedError extends ClusterError {
  readonly code = 'CLUSTER_CACHE_UNCONFIRMED';
  readonly exitCode = 1;

  constructor(cache: string, what: string, why: string) {
    super(
      `${what} of the cache '${cache}' is not confirmed: ${why}; other workers may read an older value until this one has reached the hub again`,
    );
  }
}

/** `getOrSet()` was called inside its own computation, so it would wait for itself. */
export class ClusterCacheReentryError extends ClusterError {
  readonly code = 'CLUSTER_CACHE_REENTRY';
  readonly exitCode = 1;

  constructor(key: string) {
    const shown = show(key);
    super(
      `getOrSet(${shown}) was called inside the computation of ${shown}, and would wait for itself; call it once, outside`,
    );
  }
}
