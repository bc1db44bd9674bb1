/** A class of the app. */
export type Class = abstract new (...args: never[]) => unknown;

/** A provider or controller in Nest's container: a class of the app, or a value made by a factory. */
export interface Member {
  /** Name of the module that declares it. */
  readonly module: string;
  readonly token: unknown;
  /** `undefined` if a factory has made the instance. */
  readonly type: Class | undefined;
  readonly instance: unknown;
}

/** The parts of a Nest app that checks look at. `nestjs-cluster-tools doctor` gets them too. */
export interface AppView {
  readonly providers: readonly Member[];
  readonly controllers: readonly Member[];
  /** The servers of the app's WebSocket gateways. */
  readonly socketServers: readonly unknown[];
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
  readonly socketModule?: {
    readonly socketsContainer?: { getAll?(): ReadonlyMap<string, { readonly server?: unknown }> };
  } | null;
}

/** Reads a Nest app without loading Nest. */
export function viewOf(app: object): AppView {
  const { container, socketModule } = app as NestApp;
  const modules = [...(container?.getModules?.().values() ?? [])];
  return {
    providers: modules.flatMap((module) => membersOf(module, module.providers)),
    controllers: modules.flatMap((module) => membersOf(module, module.controllers)),
    socketServers: [...(socketModule?.socketsContainer?.getAll?.().values() ?? [])].map(
      ({ server }) => server,
    ),
  };
}

function membersOf({ metatype: type }: NestModule, wrappers: NestModule['providers']): Member[] {
  return [...(wrappers ?? [])]
    .filter(([, { isAlias }]) => isAlias !== true)
    .map(([key, { token, metatype, inject, instance }]) => ({
      module: type?.name ?? 'a module without a name',
      token: token ?? key,
      type: Array.isArray(inject) ? undefined : (metatype ?? undefined),
      instance,
    }));
}

/** Metadata that a decorator has set; `undefined` if nothing has loaded reflect-metadata. */
export function metadataOf(key: string, target: object): unknown {
  const reflect = Reflect as { getMetadata?(key: string, target: object): unknown };
  return reflect.getMetadata?.(key, target);
}

/** The names of the methods of a class and of the classes that it extends, that have this metadata. */
export function methodsWith(key: string, { prototype }: Class): string[] {
  const methods: string[] = [];
  let owner = prototype as object | null;
  for (; owner !== null && owner !== Object.prototype; owner = Object.getPrototypeOf(owner)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (typeof value === 'function' && metadataOf(key, value as object) !== undefined) {
        methods.push(name);
      }
    }
  }
  return methods;
}

/** The name of an object's class, without the number that a bundler may have added (`Adapter$1`). */
export function classOf(value: unknown): string {
  const name = at(value, 'constructor', 'name');
  return typeof name === 'string' ? name.replace(/\$\d+$/, '') : '';
}

/** The value at a path of properties; `undefined` if a property on the path is missing. */
export function at(value: unknown, ...path: (string | symbol)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      inner === Object(inner) ? (Reflect.get(inner as object, key) as unknown) : undefined,
    value,
  );
}
