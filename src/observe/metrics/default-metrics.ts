import perfHooks, { type PerformanceObserverCallback } from 'node:perf_hooks';
import { collectDefaultMetrics, type Registry } from 'prom-client';

/**
 * Has prom-client measure this process. It keeps what it measures with to itself, and never ends it:
 * its observer of garbage collections and its timer are those of the process, and are noted while
 * it makes them.
 *
 * @returns what ends both.
 */
export function measureDefaults(register: Registry, prefix: string): () => void {
  const ends: (() => void)[] = [];
  const { PerformanceObserver, monitorEventLoopDelay } = perfHooks;
  class NotedObserver extends PerformanceObserver {
    constructor(callback: PerformanceObserverCallback) {
      super(callback);
      ends.push(() => this.disconnect());
    }
  }
  Object.assign(perfHooks, {
    PerformanceObserver: NotedObserver,
    monitorEventLoopDelay: (...args: Parameters<typeof monitorEventLoopDelay>) => {
      const histogram = monitorEventLoopDelay(...args);
      ends.push(() => void histogram.disable());
      return histogram;
    },
  });
  try {
    collectDefaultMetrics({ register, prefix });
  } finally {
    Object.assign(perfHooks, { PerformanceObserver, monitorEventLoopDelay });
  }
  return () => {
    for (const end of ends.splice(0)) end();
  };
}
