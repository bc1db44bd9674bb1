import type { ClusterEventName, ClusterEventMap, EventHandlers } from './event-map.js';

const EXITS: EventHandlers<ClusterEventMap['worker-exit']> = {
  'worker-died': ({ worker, cause, detail }) => ({ worker, cause, failed: true, detail }),
  'worker-stopped': ({ worker, cause, problem }) => ({
    worker,
    cause,
    failed: false,
    detail: problem,
  }),
};

/** The event `worker-exit` that follows another event; `undefined` if that event does not end a worker. */
export function workerExitIn<N extends ClusterEventName>(
  name: N,
  event: ClusterEventMap[N],
): ClusterEventMap['worker-exit'] | undefined {
  return EXITS[name]?.(event);
}
