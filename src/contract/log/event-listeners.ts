import { EventEmitter } from 'node:events';
import { type ErrorReport, reportError } from '../errors/error-report.js';
import type { LinkEventListener } from '../snapshot/index.js';
import type {
  ClusterEventListeners,
  ClusterEventMap,
  ClusterEventName,
  EmitEvent,
  EventHandlers,
} from './events.js';

/** The event `worker-exit` that follows another event; `undefined` if that event does not end a worker. */
export function workerExitIn<N extends ClusterEventName>(
  name: N,
  event: ClusterEventMap[N],
): ClusterEventMap['worker-exit'] | undefined {
  const exits: EventHandlers<ClusterEventMap['worker-exit']> = {
    'worker-died': ({ worker, cause, detail }) => ({ worker, cause, failed: true, detail }),
    'worker-stopped': ({ worker, cause, problem: detail }) => ({
      worker,
      cause,
      failed: false,
      detail,
    }),
  };
  return exits[name]?.(event);
}

/** The event listeners of this process. If a listener throws or rejects, the process goes on. */
export class EventListeners {
  readonly #listeners = new EventEmitter().setMaxListeners(0);

  constructor(
    private readonly warn: (message: string, error: ErrorReport) => void,
    given: ClusterEventListeners = {},
  ) {
    for (const [name, listener] of Object.entries(given)) {
      if (listener !== undefined) this.on(name as ClusterEventName, listener);
    }
  }

  on(name: ClusterEventName, listener: LinkEventListener): void {
    this.#listeners.on(name, listener as () => void);
  }

  off(name: ClusterEventName, listener: LinkEventListener): void {
    this.#listeners.off(name, listener as () => void);
  }

  get names(): readonly ClusterEventName[] {
    return this.#listeners.eventNames() as ClusterEventName[];
  }

  readonly call: EmitEvent = (name, event) => {
    const failed = (error: unknown): void =>
      this.warn(`a listener of '${name}' threw`, reportError(error));
    for (const listener of this.#listeners.listeners(name)) {
      try {
        const result: unknown = listener(event);
        if (result instanceof Promise) result.catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  };
}
