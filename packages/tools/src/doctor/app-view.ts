import type { Server } from 'node:http';
import { types } from 'node:util';
import { type Class, methodsOf } from '../endpoints/controller-routes.js';

/** A provider or controller in Nest's container: a class of the app, or a value made by a factory. */
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
  readonly imports?: ReadonlySet<NestModule>;
  readonly isGlobal?: boolean;
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
  readonly appOptions?: Readonly<Record<string, unknown>>;
  readonly socketModule?: {
    readonly socketsContainer?: { getAll?(): ReadonlyMap<string, { readonly server?: unknown }> };
  } | null;
  getHttpServer?(): unknown;
  getHttpAdapter?(): { getInstance?(): unknown } | undefined;
}

/** Reads a Nest app by tokens, class names and metadata, without loading Nest or the libraries that the checks look for. */
export class AppView {
  readonly #app: NestApp;
  readonly #modules: readonly NestModule[];
  readonly providers: readonly Member[];
  readonly controllers: readonly Member[];

  constructor(app: object) {
    this.#app = app;
    this.#modules = [...(this.#app.container?.getModules?.().values() ?? [])];
    this.providers = this.#modules.flatMap((module) => membersOf(module, module.providers));
    this.controllers = this.#modules.flatMap((module) => membersOf(module, module.controllers));
  }

  /** The options that the app was created with. */
  get options(): Readonly<Record<string, unknown>> {
    return this.#app.appOptions ?? {};
  }

  /** The HTTP server of the app; `undefined` if there is none. */
  get httpServer(): Partial<Server> | undefined {
    return (this.#app.getHttpServer?.() as Partial<Server> | null) ?? undefined;
  }

  /** The instance of Express or Fastify. */
  get http(): unknown {
    return this.#app.getHttpAdapter?.()?.getInstance?.();
  }

  /** The servers of the app's WebSocket gateways. */
  get socketServers(): readonly unknown[] {
    const hosts = this.#app.socketModule?.socketsContainer?.getAll?.().values() ?? [];
    return [...hosts].map(({ server }) => server);
  }

  /** Names a module and the modules that import it. A global module is named alone, because all import it. */
  describeModule(name: string): string {
    if (this.#modules.some((module) => nameOf(module) === name && module.isGlobal)) return name;
    const importers = this.#modules
      .filter(({ imports }) => [...(imports ?? [])].some((each) => nameOf(each) === name))
      .map(nameOf)
      .filter((importer) => importer !== name);
    return importers.length === 0 ? name : `${name} in ${[...new Set(importers)].join(', ')}`;
  }
}

function membersOf(module: NestModule, wrappers: NestModule['providers']): Member[] {
  const own = [...(wrappers ?? [])].filter(([, { isAlias }]) => isAlias !== true);
  return own.map(([key, { token, metatype, inject, instance }]) => ({
    module: nameOf(module),
    token: token ?? key,
    type: Array.isArray(inject) ? undefined : (metatype ?? undefined),
    instance,
  }));
}

function nameOf({ metatype }: NestModule): string {
  return metatype?.name ?? 'a module without a name';
}

/** The name of an object's class, without the number that a bundler may have added (`Adapter$1`). */
export function classOf(value: unknown): string {
  const name = at(value, 'constructor', 'name');
  return typeof name === 'string' ? name.replace(/\$\d+$/, '') : '';
}

/** Whether the class of an object, or a class that it extends, has one of these names. */
export function extendsOneOf(value: unknown, names: ReadonlySet<string>): boolean {
  for (let each = value; isPlainlyReadable(each); each = Object.getPrototypeOf(each) as unknown) {
    if (names.has(classOf(each))) return true;
  }
  return false;
}

/** The own fields of an instance of a class. Getters and proxies are not run. */
export function fieldsOf(value: unknown): (readonly [name: string, value: object])[] {
  // Lists and plain objects are skipped, because they may have any number of fields.
  if (!isPlainlyReadable(value) || Array.isArray(value) || ArrayBuffer.isView(value)) return [];
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype === null || prototype === Object.prototype) return [];
  return Object.entries(Object.getOwnPropertyDescriptors(value)).flatMap(
    ([name, { enumerable, value: held }]) =>
      enumerable === true && isPlainlyReadable(held) ? [[name, held] as const] : [],
  );
}

function isPlainlyReadable(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !types.isProxy(value);
}

/** The name of a provider or controller in a finding. */
export function nameOfMember({ type, token, instance }: Member): string {
  return type?.name ?? (typeof token === 'string' ? token : classOf(instance));
}

/** The matching methods of a member's class, in the form in which a finding names them. */
export function methodNamesOf(
  { type: declared, module, instance }: Member,
  matches: (method: object, type: Class) => boolean,
): string[] {
  const type =
    declared ?? (isPlainlyReadable(instance) ? (instance.constructor as Class) : undefined);
  if (typeof type !== 'function') return [];
  return methodsOf(type)
    .filter(([, method]) => matches(method, type))
    .map(([name]) => `${type.name}.${name}() (${module})`);
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
