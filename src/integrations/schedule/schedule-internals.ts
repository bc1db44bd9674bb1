import type { ModulesContainer } from '@nestjs/core';

type Method = (this: unknown, ...args: never[]) => unknown;

/**
 * Providers of @nestjs/schedule by the name of their class, which it may not export. There is one
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
 * Has others called for methods of those providers, by name: with the provider, the method and its
 * arguments. Their class is one for all apps of the process: the other apps' go on as they were.
 *
 * @returns what ends that; `undefined` where the app has no such provider.
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
