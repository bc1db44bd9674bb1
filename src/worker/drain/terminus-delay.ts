import { modulesOf } from '../life/nest-container.js';

interface DelayingProvider {
  beforeApplicationShutdown?: unknown;
  options?: { readonly gracefulShutdownTimeoutMs?: number };
}

/**
 * Sets `gracefulShutdownTimeoutMs` of `TerminusModule.forRoot()` to 0. It is
 * waited for in a shutdown hook, so that balancers see the app's readiness go
 * off. Hooks run after the drain, when nobody can ask any more.
 *
 * @returns what to tell the operator, where there was one.
 */
export function dropTerminusDelay(app: unknown): string | undefined {
  let dropped: string | undefined;
  for (const module of modulesOf(app)) {
    if (module.name !== 'TerminusModule') continue;
    for (const { instance } of module.providers?.values() ?? []) {
      // In terminus 11 a service of its own, in 12 the executor of health checks.
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
