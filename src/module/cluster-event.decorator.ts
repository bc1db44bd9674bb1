import type { ClusterEventName, ClusterEventMap } from '../contract/log/events.js';

// A registered symbol, so that two copies of this package in one process find the same listeners.
const LISTENERS = Symbol.for('nestjs-cluster.event-listeners');

/** A decorated method, with the event that it listens to. */
export interface EventMethod {
  readonly event: ClusterEventName;
  readonly method: string | symbol;
}

interface Decorated {
  [LISTENERS]?: readonly EventMethod[];
}

/**
 * Decorator for a method of a provider or controller: the package calls the method in every worker
 * for each cluster event named `event`. A worker that does not read its IPC channel in time misses
 * events, so do not use events for exact counts. Errors that the method throws are logged.
 */
export function OnClusterEvent<N extends ClusterEventName>(event: N) {
  return <M extends (event: ClusterEventMap[N]) => unknown>(
    target: object,
    method: string | symbol,
    _descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const before = (target as Decorated)[LISTENERS] ?? []; // includes the methods of the base class
    Object.defineProperty(target, LISTENERS, {
      value: [...before, { event, method }],
      configurable: true,
    });
  };
}

/** The events to which instances of a class listen. */
export function eventMethodsOf(prototype: object | null): readonly EventMethod[] {
  return (prototype as Decorated | null)?.[LISTENERS] ?? [];
}
