import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { eventMethodsOf } from './cluster-event.decorator.js';
import { ClusterConfigurationError } from '../contract/errors/index.js';
import { checkEventName } from '../contract/options/event-names.js';
import { CLUSTER_LINK, type ClusterLink } from '../contract/snapshot/index.js';
import { OffloadExplorer } from '../offload/index.js';

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
      await this.link.reportBootFailure(error);
      throw error;
    }
  }

  #listen(): void {
    for (const { instance, type, isStatic } of this.explorer.members()) {
      // Reads the prototype and not the instance, which may be a proxy that has any property.
      const prototype: unknown = instance ? Object.getPrototypeOf(instance) : type.prototype;
      const methods = eventMethodsOf(prototype as object | null);
      if (methods.length === 0) continue;
      if (!isStatic) {
        throw new ClusterConfigurationError(
          `@OnClusterEvent() on ${type.name}.${String(methods[0]!.method)} cannot work: the class is not in the default scope, so that there is no instance to call; move the method to one that is`,
        );
      }
      for (const { event, method } of methods) {
        const call = (told: never): unknown =>
          (instance as Record<string | symbol, (event: never) => unknown>)[method]!(told);
        this.link.onEvent(checkEventName(event), call);
      }
    }
  }
}
