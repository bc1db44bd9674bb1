/** A class of the app. */
export type Class = abstract new (...args: never[]) => unknown;

/** A provider or controller in Nest's container. */
export interface Member {
  /** Name of the module that declares it. */
  readonly module: string;
  readonly token: unknown;
  readonly type: Class | undefined;
  readonly instance: unknown;
}

/** The properties of Nest's modules that are read, the same in Nest 11 and 12. */
interface NestModule {
  readonly metatype?: Class;
  readonly providers?: ReadonlyMap<unknown, NestWrapper>;
  readonly controllers?: ReadonlyMap<unknown, NestWrapper>;
}

interface NestWrapper {
  readonly token?: unknown;
  readonly metatype?: Class | null; // the class, or the function of a factory
  readonly inject?: unknown; // of a factory alone
  readonly instance?: unknown;
  readonly isAlias?: boolean; // another token for an instance, by `useExisting`
}

interface NestApp {
  readonly container?: { getModules?(): ReadonlyMap<string, NestModule> };
}

/** Reads a Nest app by tokens, class names and metadata, without loading Nest or the libraries that the checks look for. */
export class AppView {
  readonly providers: readonly Member[];
  readonly controllers: readonly Member[];

  constructor(app: object) {
    const modules = [...((app as NestApp).container?.getModules?.().values() ?? [])];
    this.providers = modules.flatMap((module) => membersOf(module, module.providers));
    this.controllers = modules.flatMap((module) => membersOf(module, module.controllers));
  }
}

function membersOf({ metatype: module }: NestModule, wrappers: NestModule['providers']): Member[] {
  const own = [...(wrappers ?? [])].filter(([, { isAlias }]) => isAlias !== true);
  return own.map(([key, { token, metatype, inject, instance }]) => ({
    module: module?.name ?? 'a module without a name',
    token: token ?? key,
    type: Array.isArray(inject) ? undefined : (metatype ?? undefined),
    instance,
  }));
}

/** The name of an object's class, without the number that a bundler may have added (`Adapter$1`). */
export function classOf(value: unknown): string {
  const name = at(value, 'constructor', 'name');
  return typeof name === 'string' ? name.replace(/\$\d+$/, '') : '';
}

/** The name of a provider or controller in a finding. */
export function nameOfMember({ type, token, instance, module }: Member): string {
  return `${type?.name ?? (typeof token === 'string' ? token : classOf(instance))} (${module})`;
}

/** The value at a path of properties; `undefined` if a property on the path is missing. */
export function at(value: unknown, ...path: (string | symbol)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      (typeof inner === 'object' && inner !== null) || typeof inner === 'function'
        ? (Reflect.get(inner, key) as unknown)
        : undefined,
    value,
  );
}

/** Metadata that a decorator has set; `undefined` if nothing has loaded reflect-metadata. */
export function metadataOf(key: string, target: object): unknown {
  return (Reflect as { getMetadata?(key: string, target: object): unknown }).getMetadata?.(
    key,
    target,
  );
}
