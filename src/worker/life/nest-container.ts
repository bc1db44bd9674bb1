/** A module of a Nest app, as far as it is looked at; all of it may be missing. */
interface NestModule {
  readonly name?: string;
  readonly providers?: ReadonlyMap<unknown, { readonly instance?: unknown }>;
}

interface NestInternals {
  readonly container?: { getModules?(): ReadonlyMap<string, NestModule> };
}

/** The modules of an app; none where it is not Nest's, or Nest is not as expected. */
export function modulesOf(app: unknown): Iterable<NestModule> {
  return (app as NestInternals).container?.getModules?.().values() ?? [];
}
