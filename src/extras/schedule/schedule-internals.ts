import type { ModulesContainer } from '@nestjs/core';
import { ClusterConfigurationError } from '../../errors/index.js';

/** A class of @nestjs/schedule in this app, and its instance once there is one. */
export interface Internal {
  readonly prototype: object;
  readonly find: () => unknown;
}

type Method = (this: unknown, ...args: never[]) => unknown;

/**
 * A provider of @nestjs/schedule that it may not export, by the name of its class.
 *
 * @throws ClusterConfigurationError where the app does not import `ScheduleModule`.
 */
export function internalOf(modules: ModulesContainer, name: string): Internal {
  for (const module of modules.values()) {
    if (module.metatype?.name !== 'ScheduleModule') continue;
    for (const wrapper of module.providers.values()) {
      const { metatype } = wrapper;
      if (typeof metatype !== 'function' || metatype.name !== name) continue;
      return { prototype: metatype.prototype as object, find: () => wrapper.instance as unknown };
    }
  }
  throw new ClusterConfigurationError(
    `ClusterScheduleModule found no ${name} of @nestjs/schedule; add ScheduleModule.forRoot() to the imports, of @nestjs/schedule 6 or 12`,
  );
}

/** Calls `around` for a method of that instance: its class is that of every app in the process. @returns what ends that. */
export function wrapMethod<A extends unknown[]>(
  { prototype, ...of }: Internal,
  name: string,
  around: (original: Method, args: A) => unknown,
): () => void {
  const original = Reflect.get(prototype, name) as Method;
  const wrapped: Method = function (...args) {
    const bound = original.bind(this) as Method;
    return this === of.find() ? around(bound, args as never) : bound(...args);
  };
  Reflect.set(prototype, name, wrapped);
  return () => {
    if (Reflect.get(prototype, name) === wrapped) Reflect.set(prototype, name, original);
  };
}
