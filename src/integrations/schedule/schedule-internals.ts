import type { ModulesContainer } from '@nestjs/core';

type Method = (this: unknown, ...args: never[]) => unknown;

/**
 * Finds providers of @nestjs/schedule by the name of their class, because some classes are not
 * exported. Each `ScheduleModule.forRoot()` of the app has its own provider for the whole app.
 */
export function providersOf<T>(modules: ModulesContainer, className: string) {
  return [...modules.values()]
    .filter(({ metatype }) => metatype?.name === 'ScheduleModule')
    .flatMap(({ providers }) => [...providers.values()])
    .filter(({ metatype }) => metatype?.name === className)
    .map((provider) => provider as { metatype: { prototype: object }; instance: T | undefined });
}

/**
 * Wraps methods of these providers. A wrapper gets the provider, the original method and the call's
 * arguments. Another app in this process has the same class, but its providers are not wrapped.
 *
 * @returns a function that restores the methods, or `undefined` if the app has no such provider.
 */
export function wrapMethods(
  modules: ModulesContainer,
  className: string,
  around: Readonly<Record<string, Method>>,
): (() => void) | undefined {
  const ends = providersOf(modules, className).flatMap((provider) => {
    const prototype = provider.metatype.prototype as Record<string, Method>;
    return Object.entries(around).map(([name, call]) => {
      const original = prototype[name]!;
      const wrapped: Method = function (...args) {
        const bound = original.bind(this);
        if (this !== provider.instance) return bound(...args);
        return call(...([this, bound, ...args] as never[]));
      };
      prototype[name] = wrapped;
      return () => prototype[name] === wrapped && (prototype[name] = original);
    });
  });
  return ends.length === 0 ? undefined : () => ends.toReversed().forEach((end) => end());
}
