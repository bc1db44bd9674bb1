import type { DiscoveryService } from '@nestjs/core';

/** A class of the app. */
export type Class = abstract new (...args: never[]) => unknown;

/** The metadata key of the paths of controllers and handlers, the same in Nest 11 and 12. */
const PATH = 'path';

/** Metadata that a decorator has set; `undefined` if nothing has loaded reflect-metadata. */
export function metadataOf(key: string, target: object): unknown {
  return (Reflect as { getMetadata?(key: string, target: object): unknown }).getMetadata?.(
    key,
    target,
  );
}

/** The prototypes of a class and of the classes that it extends. */
export function* prototypesOf({ prototype }: Class): Generator<object> {
  for (
    let owner = prototype as object | null;
    owner !== null && owner !== Object.prototype;
    owner = Object.getPrototypeOf(owner) as object | null
  ) {
    yield owner;
  }
}

/**
 * Methods of a class and of the classes that it extends, each with its name and the prototype that
 * declares it. Getters are not run.
 */
export function methodsOf(type: Class): [name: string, method: object, owner: object][] {
  const methods = new Map<string, [string, object, object]>();
  for (const owner of prototypesOf(type)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (typeof value === 'function' && name !== 'constructor' && !methods.has(name)) {
        methods.set(name, [name, value as object, owner]);
      }
    }
  }
  return [...methods.values()];
}

/** The paths of a controller's method without prefixes and versions, which belong to the app. */
export function routesOf(type: Class, method: object): string[] {
  return pathsOf(type).flatMap((prefix) =>
    pathsOf(method).map((end) => `/${prefix}/${end}`.replaceAll(/\/+/g, '/')),
  );
}

/** The paths of the methods of all controllers, by `Class.method`, as {@link routesOf} has them. */
export function handlersOf(
  discovery: Pick<DiscoveryService, 'getControllers'>,
): Map<string, string[]> {
  const handlers = new Map<string, string[]>();
  for (const { metatype } of discovery.getControllers()) {
    const type = metatype as Class;
    for (const [name, method] of methodsOf(type)) {
      const handler = `${type.name}.${name}`;
      handlers.set(handler, [...(handlers.get(handler) ?? []), ...routesOf(type, method)]);
    }
  }
  return handlers;
}

function pathsOf(subject: object): string[] {
  return [metadataOf(PATH, subject) ?? []].flat().filter((path) => typeof path === 'string');
}
