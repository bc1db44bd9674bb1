import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { ClusterConfigurationError } from '../contract/errors/errors.js';
import type { ClusterEventMap, ClusterEventName } from '../contract/log/events.js';
import { checkEventName } from '../contract/options/bootstrap.js';
import { CLUSTER_LINK, type ClusterLink } from '../contract/snapshot/types.js';
import { OffloadExplorer } from '../offload/offload.explorer.js';

// A registered symbol, so that two copies of this package in one process share the listeners.
const LISTENERS = Symbol.for('nestjs-cluster.event-listeners');

/** A method with {@link OnClusterEvent}. */
interface EventMethod {
  readonly event: ClusterEventName;
  readonly method: string | symbol;
}

/**
 * Decorates a provider or controller method. Every worker calls it for each cluster event named
 * `event`. A worker that does not read its IPC channel in time misses events, so do not use events
 * for exact counts. Errors that the method throws are logged.
 */
export function OnClusterEvent<N extends ClusterEventName>(event: N) {
  return <M extends (event: ClusterEventMap[N]) => unknown>(
    target: object,
    method: string | symbol,
    _descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    // Includes the methods of the base class.
    Reflect.defineMetadata(LISTENERS, [...listenersOf(target), { event, method }], target);
  };
}

function listenersOf(prototype: object | null): readonly EventMethod[] {
  return (prototype && (Reflect.getMetadata(LISTENERS, prototype) as EventMethod[])) ?? [];
}

/** Finds the `@OnClusterEvent()` methods of all controllers and providers. */
@Injectable()
export class ClusterEventExplorer implements OnModuleInit {
  constructor(
    @Inject(OffloadExplorer) private readonly explorer: OffloadExplorer,
    @Inject(CLUSTER_LINK) private readonly link: ClusterLink,
  ) {}

  /** @throws ClusterConfigurationError for a class with another scope, or for an unknown event. */
  async onModuleInit(): Promise<void> {
    try {
      this.#listen();
    } catch (error) {
      await this.link.refuseStart(error);
      throw error;
    }
  }

  #listen(): void {
    for (const { instance, type, isStatic } of this.explorer.members()) {
      // Reads the prototype, because an instance may be a proxy that has every property.
      const methods = listenersOf(instance ? Object.getPrototypeOf(instance) : type.prototype);
      if (methods.length > 0 && !isStatic) {
        throw new ClusterConfigurationError(
          `@OnClusterEvent() on ${type.name}.${String(methods[0]!.method)} cannot work: the class does not have the default scope, so there is no single instance to call; move the method to a class with the default scope`,
        );
      }
      for (const { event, method } of methods) {
        const listener = (given: never): unknown =>
          (instance as Record<string | symbol, (given: never) => unknown>)[method]!(given);
        this.link.onEvent(checkEventName(event), listener);
      }
    }
  }
}
