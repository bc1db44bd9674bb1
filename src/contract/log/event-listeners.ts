import { EventEmitter } from 'node:events';
import { callSafely, type ErrorReport, reportError } from '../errors/error-report.js';
import type { LinkEventListener } from '../snapshot/types.js';
import type { ClusterEventListeners, ClusterEventName, EmitEvent } from './events.js';

/** The event listeners of this process. A listener's error is logged and does not end the process. */
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
      this.warn(`a listener for '${name}' threw`, reportError(error));
    for (const listener of this.#listeners.listeners(name)) {
      callSafely(() => listener(event) as unknown, failed);
    }
  };
}
