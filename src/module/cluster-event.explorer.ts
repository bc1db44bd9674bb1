import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { eventMethodsOf } from './cluster-event.decorator.js';
import { ClusterConfigurationError } from '../contract/errors/index.js';
import { checkEventName } from '../contract/options/index.js';
import { CLUSTER_LINK, type ClusterPort, type LifecyclePort } from '../contract/snapshot/index.js';

/** Finds the `@OnClusterEvent()` methods of all controllers and providers. */
@Injectable()
export class ClusterEventExplorer implements OnModuleInit {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(CLUSTER_LINK) private readonly link: ClusterPort & LifecyclePort,
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
    const seen = new Set<unknown>();
    for (const wrapper of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      const instance = wrapper.instance as object | null | undefined;
      const type = wrapper.metatype as { readonly prototype?: object } | null;
      const key = isObject(instance) ? instance : type;
      // Reads the prototype and not the instance, which may be a proxy that has any property.
      const prototype: unknown = isObject(instance)
        ? Object.getPrototypeOf(instance)
        : type?.prototype;
      if (!isObject(prototype) || seen.has(key)) continue;
      seen.add(key); // one instance may be provided under several tokens
      const methods = eventMethodsOf(prototype);
      if (methods.length === 0) continue;
      if (!wrapper.isDependencyTreeStatic() || wrapper.isTransient) {
        throw new ClusterConfigurationError(
          `@OnClusterEvent() on ${wrapper.name}.${String(methods[0]!.method)} cannot work: the class is not in the default scope, so that there is no instance to call; move the method to one that is`,
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

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
