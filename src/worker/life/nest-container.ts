/** The used part of a module of a Nest app. Any property may be missing. */
interface NestModule {
  readonly name?: string;
  readonly providers?: ReadonlyMap<unknown, { readonly instance?: unknown }>;
}

interface NestInternals {
  readonly container?: { getModules?(): ReadonlyMap<string, NestModule> };
}

/** The modules of an app. Empty if the app is not a Nest app or Nest's internals have changed. */
export function modulesOf(app: unknown): Iterable<NestModule> {
  return (app as NestInternals).container?.getModules?.().values() ?? [];
}
