import perfHooks, { type PerformanceObserverCallback } from 'node:perf_hooks';
import { collectDefaultMetrics, type Registry } from 'prom-client';

/**
 * Makes prom-client measure this process. prom-client never ends its observer of garbage
 * collections and its event loop histogram, and does not expose them. So this function records both
 * while prom-client creates them.
 *
 * @returns a function that ends the observer and the histogram.
 */
export function measureDefaults(register: Registry): () => void {
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
    collectDefaultMetrics({ register });
  } finally {
    Object.assign(perfHooks, { PerformanceObserver, monitorEventLoopDelay });
  }
  return () => {
    for (const end of ends.splice(0)) end();
  };
}
