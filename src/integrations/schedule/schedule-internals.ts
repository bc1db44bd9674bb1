import type { ModulesContainer } from '@nestjs/core';

type Method = (this: unknown, ...args: never[]) => unknown;

/**
 * Providers of @nestjs/schedule by the name of their class, which need not be exported. There is one
 * for each `ScheduleModule.forRoot()` of the app, and each of them explores the whole app.
 */
export function providersOf<T>(modules: ModulesContainer, className: string) {
  return [...modules.values()]
    .filter(({ metatype }) => metatype?.name === 'ScheduleModule')
    .flatMap(({ providers }) => [...providers.values()])
    .filter(({ metatype }) => metatype?.name === className)
    .map((provider) => provider as { metatype: { prototype: object }; instance: T | undefined });
}

/**
 * Wraps methods of those providers, by name. A wrapper gets the provider, the method and its
 * arguments. All apps of the process share the class, so a call of another app's provider is passed on.
 *
 * @returns a function that undoes it; `undefined` if the app has no such provider.
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
