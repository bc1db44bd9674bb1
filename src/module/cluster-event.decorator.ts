import type { ClusterEventName, ClusterEventMap } from '../contract/events/index.js';

// A registered symbol: two copies of this package in one process know each other's classes.
const LISTENERS = Symbol.for('nestjs-cluster.event-listeners');

/** A method that listens to an event. */
export interface EventMethod {
  readonly event: ClusterEventName;
  readonly method: string | symbol;
}

interface Decorated {
  [LISTENERS]?: readonly EventMethod[];
}

/**
 * Calls a method of a provider or controller on each event of that name in the cluster, in every
 * worker that has one. The primary tells those workers alone. A worker that does not
 * read its channel misses events, so they cannot serve exact bookkeeping. An error that the
 * method throws is logged.
 */
export function OnClusterEvent<N extends ClusterEventName>(event: N) {
  return <M extends (event: ClusterEventMap[N]) => unknown>(
    target: object,
    method: string | symbol,
    _descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const before = (target as Decorated)[LISTENERS] ?? []; // including the base class's own
    Object.defineProperty(target, LISTENERS, {
      value: [...before, { event, method }],
      configurable: true,
    });
  };
}

/** The events to which instances of a class listen. */
export function eventMethodsOf(prototype: object): readonly EventMethod[] {
  return (prototype as Decorated)[LISTENERS] ?? [];
}
