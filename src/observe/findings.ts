import { type FindingName, silencedBy } from '../contract/options/log.js';

type Class = abstract new (...args: never[]) => unknown;

/** A provider or controller in Nest's container. */
interface Member {
  /** The name of its module. */
  readonly module: string;
  readonly token: unknown;
  /** `undefined` if a factory created the instance. */
  readonly type: Class | undefined;
  readonly instance: unknown;
}

/** The parts of a Nest app that checks read. `nestjs-cluster-tools doctor` also uses them. */
export interface AppView {
  readonly providers: readonly Member[];
  readonly controllers: readonly Member[];
  /** The servers of the app's WebSocket gateways, from any library. */
  readonly socketServers: readonly unknown[];
}

/** The part of Nest's modules that is used here. It is the same in Nest 11 and 12. */
interface NestModule {
  readonly metatype?: Class;
  readonly providers?: ReadonlyMap<unknown, NestWrapper>;
  readonly controllers?: ReadonlyMap<unknown, NestWrapper>;
}

interface NestWrapper {
  readonly token?: unknown;
  readonly metatype?: Class | null; // the class, or a factory's function
  readonly inject?: unknown; // only set for factories
  readonly instance?: unknown;
  readonly isAlias?: boolean; // set for `useExisting`
}

interface NestApp {
  readonly container?: { getModules?(): ReadonlyMap<string, NestModule> };
  readonly socketModule?: {
    readonly socketsContainer?: { getAll?(): ReadonlyMap<string, { readonly server?: unknown }> };
  } | null;
}

/** A part of an app that does not work correctly with several workers. */
export interface Finding {
  readonly name: FindingName;
  /** The class and its module. */
  readonly where: string;
  readonly problem: string;
  readonly remedy: string;
}

/** Searches an app for one kind of finding. Reads tokens, class names and metadata, and loads no library. */
interface Check extends Pick<Finding, 'name' | 'problem' | 'remedy'> {
  /** @returns the classes and modules with the problem. */
  readonly find: (app: AppView) => readonly string[];
}

/** `@Cron()`, `@Interval()` and `@Timeout()` of @nestjs/schedule set metadata with this key on a method. */
const JOB = 'SCHEDULER_TYPE';

const scheduledJobs: Check = {
  name: 'scheduled-jobs',
  problem: 'scheduled jobs run in every worker',
  remedy:
    "import ClusterScheduleModule.forRoot() from 'nestjs-cluster/schedule' in the app, to run each job in one worker",
  find: ({ providers, controllers }) => {
    if (providers.some(({ module }) => module === 'ClusterScheduleModule')) return [];
    if (!providers.some(({ instance }) => classOf(instance) === 'SchedulerRegistry')) return [];
    return [...providers, ...controllers].flatMap(({ type, module, instance }) => {
      const owner = type ?? at(instance, 'constructor');
      if (typeof owner !== 'function') return [];
      return methodsWith(JOB, owner as Class).map((name) => `${owner.name}.${name}() (${module})`);
    });
  },
};

const throttler: Check = {
  name: 'throttler',
  problem: 'each worker counts requests separately, so clients can exceed the rate limit',
  remedy:
    "set storage: new ClusterThrottlerStorage() from '@nestjs-cluster/shared/throttler' in ThrottlerModule.forRoot()",
  find: ({ providers }) =>
    providers
      .filter(({ instance }) => classOf(instance) === 'ThrottlerStorageService')
      .map(({ module }) => module),
};

/** In-memory stores of JavaScript, cacheable, keyv, lru-cache and quick-lru. */
const IN_PROCESS: ReadonlySet<string> = new Set([
  'Map',
  'CacheableMemory',
  'KeyvCacheableMemory',
  'KeyvMemoryAdapter',
  'LRUCache',
  'QuickLRU',
]);

const cache: Check = {
  name: 'cache',
  problem: 'each worker has its own cache, so a value deleted in one worker stays in the others',
  remedy:
    "set stores: [clusterCache()] from '@nestjs-cluster/shared/cache' in CacheModule.register()",
  find: ({ providers }) =>
    providers
      .filter(({ token }) => token === 'CACHE_MANAGER')
      .filter(({ instance }) => {
        const stores = at(instance, 'stores');
        // An in-memory store in front of a shared store is fine: the app accepts stale values.
        return Array.isArray(stores) && stores.every(livesInProcess);
      })
      .map(({ module }) => module),
};

/** Keyv 5 keeps its store in its options, Keyv 6 in a property. Cacheable has two stores. */
function livesInProcess(keyv: unknown): boolean {
  if (at(keyv, 'secondary') !== undefined) return false;
  const store = at(keyv, 'opts', 'store') ?? at(keyv, 'primary', 'store') ?? at(keyv, 'store');
  return IN_PROCESS.has(classOf(store ?? keyv));
}

/** `@nestjs-cluster/socket.io` sets this property on Engine.IO. */
const CLUSTER_SESSIONS = Symbol.for('nestjs-cluster.sessions');

const socketIo: Check = {
  name: 'socket-io',
  problem:
    'Socket.IO broadcasts reach only the clients of one worker, or long polling fails (400, Session ID unknown)',
  remedy:
    "call app.useWebSocketAdapter(new ClusterIoAdapter(app)) from '@nestjs-cluster/socket.io'",
  find: ({ providers, socketServers }) =>
    socketServers.some(isAlone)
      ? providers
          .filter(({ type }) => type && metadataOf('websockets:is_gateway', type) === true)
          .map(({ type, module }) => `${type!.name} (${module})`)
      : [],
};

/** Whether this is a Socket.IO server or namespace whose adapter or long polling works in only one process. */
function isAlone(each: unknown): boolean {
  const server = typeof at(each, 'of') === 'function' ? each : at(each, 'server');
  if (typeof at(server, 'of') !== 'function') return false;
  const adapter = classOf(at((server as { of(name: string): unknown }).of('/'), 'adapter'));
  const transports = at(server, 'engine', 'opts', 'transports');
  const polls = Array.isArray(transports) && transports.includes('polling');
  return (
    /^(Adapter|SessionAwareAdapter)$/.test(adapter) ||
    (polls && at(server, 'engine', CLUSTER_SESSIONS) !== true)
  );
}

const CHECKS: readonly Check[] = [scheduledJobs, throttler, cache, socketIo];

/** Ignores a check's errors, because the app may have an unexpected version of a library. */
export function findingsOf(app: AppView): Finding[] {
  return CHECKS.flatMap(({ find, ...finding }) => {
    try {
      const places = [...new Set(find(app))];
      const where = places.join(', ');
      return places.length === 0 ? [] : [{ ...finding, where }];
    } catch {
      return [];
    }
  });
}

/** A log line for each finding. */
export function startWarnings(app: object, ignore: readonly FindingName[]): string[] {
  return findingsOf(viewOf(app))
    .filter(({ name }) => !ignore.includes(name))
    .map(
      ({ name, where, problem, remedy }) => `${problem}: ${where}; ${remedy}; ${silencedBy(name)}`,
    );
}

/** Does not load Nest. */
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

/** `undefined` if reflect-metadata is not loaded. */
function metadataOf(key: string, target: object): unknown {
  const reflect = Reflect as { getMetadata?(key: string, target: object): unknown };
  return reflect.getMetadata?.(key, target);
}

/** The names of a class's methods with this metadata. Includes inherited methods. */
function methodsWith(key: string, { prototype }: Class): string[] {
  const methods: string[] = [];
  let owner = (prototype ?? null) as object | null; // a bound function has none
  for (; owner !== null && owner !== Object.prototype; owner = Object.getPrototypeOf(owner)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (typeof value === 'function' && metadataOf(key, value as object) !== undefined) {
        methods.push(name);
      }
    }
  }
  return methods;
}

/** The name of an object's class, without a bundler's suffix (`Adapter$1`). */
function classOf(value: unknown): string {
  const name = at(value, 'constructor', 'name');
  return typeof name === 'string' ? name.replace(/\$\d+$/, '') : '';
}

/** The value at a property path. `undefined` if a property on the path is missing. */
function at(value: unknown, ...path: (string | symbol)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      inner === Object(inner) ? (Reflect.get(inner as object, key) as unknown) : undefined,
    value,
  );
}
