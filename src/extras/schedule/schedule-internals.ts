import type { ModulesContainer } from '@nestjs/core';

type Method = (this: unknown, ...args: never[]) => unknown;

/**
 * Has `around` called for a method of a provider of @nestjs/schedule, by the name of its class, which it
 * may not export. That class is one for all apps of the process: the other apps' go on as they were.
 *
 * @returns what ends that; `undefined` where the app has no such provider.
 */
export function wrapMethod<A extends unknown[]>(
  modules: ModulesContainer,
  className: string,
  name: string,
  around: (original: (...args: A) => unknown, ...args: A) => unknown,
): (() => void) | undefined {
  const provider = [...modules.values()]
    .filter(({ metatype }) => metatype?.name === 'ScheduleModule')
    .flatMap(({ providers }) => [...providers.values()])
    .find(({ metatype }) => metatype?.name === className);
  if (provider === undefined) return undefined;
  const { prototype } = provider.metatype as unknown as { prototype: Record<string, Method> };
  const original = prototype[name]!;
  const wrapped: Method = function (...args) {
    const bound = original.bind(this);
    return this === provider.instance ? around(bound as never, ...(args as never)) : bound(...args);
  };
  prototype[name] = wrapped;
  return () => {
    if (prototype[name] === wrapped) prototype[name] = original;
  };
}
