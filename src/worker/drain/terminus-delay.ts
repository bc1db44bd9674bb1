import { modulesOf } from '../life/nest-container.js';

interface DelayingProvider {
  beforeApplicationShutdown?: unknown;
  options?: { readonly gracefulShutdownTimeoutMs?: number };
}

/**
 * Sets `gracefulShutdownTimeoutMs` of `TerminusModule.forRoot()` to 0. Terminus waits for that time
 * in a shutdown hook, so that load balancers notice the failing readiness check. Here the wait is
 * useless: hooks run after the drain, when no load balancer can connect any more.
 *
 * @returns a warning if the app had set a time above 0.
 */
export function dropTerminusDelay(app: unknown): string | undefined {
  let dropped: string | undefined;
  for (const module of modulesOf(app)) {
    if (module.name !== 'TerminusModule') continue;
    for (const { instance } of module.providers?.values() ?? []) {
      // The provider is a separate service in terminus 11, and the health check executor in terminus 12.
      const provider = instance as DelayingProvider | null | undefined;
      if (typeof provider?.beforeApplicationShutdown !== 'function') continue;
      const delayMs = provider.options?.gracefulShutdownTimeoutMs ?? 0;
      if (!(delayMs > 0)) continue;
      provider.options = { ...provider.options, gracefulShutdownTimeoutMs: 0 };
      dropped = `gracefulShutdownTimeoutMs of TerminusModule (${delayMs} ms) is not waited for: by then nobody can connect any more; set shutdown.lameDuckMs of bootstrap() instead`;
    }
  }
  return dropped;
}
