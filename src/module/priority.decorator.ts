import { SetMetadata } from '@nestjs/common';
import { ClusterConfigurationError } from '../contract/errors/index.js';
import { show } from '../contract/options/check/validate.js';
import { PRIORITIES, PRIORITY, type RequestPriority } from '../contract/options/choices.js';

/**
 * Decorator for handlers and controllers: how willingly a worker at its limit refuses their
 * requests. Needs the option `limit` of `bootstrap()`; without it, the decorator has no effect.
 *
 * - `critical`: never refused, and does not wait. For a few light routes, such as health checks.
 * - `normal`: the default.
 * - `sheddable`: refused before any `normal` request.
 *
 * The priority of a controller holds for its own handlers that have none. It does not hold for
 * handlers that the controller inherits from another class.
 *
 * @throws ClusterConfigurationError for another priority.
 */
export function Priority(priority: RequestPriority): MethodDecorator & ClassDecorator {
  if (!PRIORITIES.includes(priority)) {
    throw new ClusterConfigurationError(
      `@Priority(${show(priority)}) is not allowed; expected one of ${PRIORITIES.map((each) => `'${each}'`).join(', ')}`,
    );
  }
  const set = SetMetadata(PRIORITY, priority);
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    if (descriptor !== undefined) return void set(target, key!, descriptor);
    const { prototype } = target as { readonly prototype: object };
    for (const [name, own] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      const isMethod = typeof own.value === 'function' && name !== 'constructor';
      // Decorators of methods have run before the decorators of their class.
      if (isMethod && !Reflect.hasMetadata(PRIORITY, own.value as object)) {
        set(prototype, name, own);
      }
    }
  };
}
