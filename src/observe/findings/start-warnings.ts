import type { FindingName } from '../../contract/options/index.js';
import { silencedBy } from '../../contract/options/warning-options.interface.js';

/** The properties of a Nest app that are read, the same in Nest 11 and 12. */
interface NestApp {
  readonly container?: { getModules?(): ReadonlyMap<string, NestModule> };
  readonly socketModule?: {
    readonly socketsContainer?: { getAll?(): ReadonlyMap<string, { readonly server?: unknown }> };
  } | null;
}

interface NestModule {
  readonly metatype?: { readonly name: string };
  readonly providers?: ReadonlyMap<unknown, { readonly instance?: unknown }>;
}

interface Provider {
  readonly module: string;
  readonly token: unknown;
  readonly instance: unknown;
}

interface Facts {
  readonly providers: readonly Provider[];
  /** The servers of the app's WebSocket gateways. */
  readonly socketServers: readonly unknown[];
}

/** Looks for one thing that goes wrong with several workers. @returns the problem and its remedy. */
type Check = (facts: Facts) => string | undefined;

const CHECKS = {
  'scheduled-jobs': ({ providers }: Facts) => {
    const registry = providers.find(({ instance }) => classOf(instance) === 'SchedulerRegistry');
    const isGated = providers.some(({ module }) => module === 'ClusterScheduleModule');
    // Without a job the registry is empty.
    const lists = ['getCronJobs', 'getIntervals', 'getTimeouts'].map((list) => {
      const read = at(registry?.instance, list);
      const jobs: unknown = typeof read === 'function' && read.call(registry!.instance);
      return Number(at(jobs, 'size') ?? at(jobs, 'length') ?? 0);
    });
    if (isGated || lists.every((jobs) => jobs === 0)) return undefined;
    return 'scheduled jobs run in every worker; import ClusterScheduleModule of nestjs-cluster/schedule beside ScheduleModule, which runs each in one worker';
  },

  throttler: ({ providers }: Facts) =>
    providers.some(({ instance }) => classOf(instance) === 'ThrottlerStorageService')
      ? 'every worker counts requests for itself, so a client may send the limit to each; npm install @nestjs-cluster/shared, and give ThrottlerModule { throttlers: […], storage: new ClusterThrottlerStorage() } of @nestjs-cluster/shared/throttler'
      : undefined,

  cache: ({ providers }: Facts) =>
    providers.some(({ token, instance }) => token === 'CACHE_MANAGER' && livesInProcess(instance))
      ? 'every worker has a cache of its own, so what one deletes stays in the others; npm install @nestjs-cluster/shared, and give CacheModule { stores: [clusterCache()] } of @nestjs-cluster/shared/cache'
      : undefined,

  'socket-io': ({ socketServers }: Facts) =>
    socketServers.some(isAlone)
      ? "a Socket.IO client reaches the rooms of one worker alone, and long polling fails; npm install @nestjs-cluster/socket.io, and app.useWebSocketAdapter(new ClusterIoAdapter(app)); or allow transports: ['websocket'] alone, with an adapter that reaches all workers"
      : undefined,
} satisfies Partial<Record<FindingName, Check>>;

/** Classes of stores that live in the process: of JavaScript, cacheable, keyv, lru-cache and quick-lru. */
const IN_MEMORY: ReadonlySet<string> = new Set([
  'Map',
  'CacheableMemory',
  'KeyvCacheableMemory',
  'KeyvMemoryAdapter',
  'LRUCache',
  'QuickLRU',
]);

/** A store in the process is fine in front of a shared one: the app accepts that it may be stale. */
function livesInProcess(cacheManager: unknown): boolean {
  const stores = at(cacheManager, 'stores');
  return (
    Array.isArray(stores) &&
    stores.length > 0 &&
    stores.every((keyv: unknown) => {
      if (at(keyv, 'secondary') !== undefined) return false;
      const store = at(keyv, 'opts', 'store') ?? at(keyv, 'primary', 'store') ?? at(keyv, 'store');
      return IN_MEMORY.has(classOf(store ?? keyv));
    })
  );
}

/** Set by the adapter of @nestjs-cluster/socket.io, with which a client may reach any worker. */
const CLUSTER_SESSIONS = Symbol.for('nestjs-cluster.sessions');

/** Adapters of Socket.IO that know only the clients of one process. */
const IN_PROCESS: ReadonlySet<string> = new Set(['Adapter', 'SessionAwareAdapter']);

/** Whether this is a Socket.IO server, or one of its namespaces, that fits one process alone. */
function isAlone(server: unknown): boolean {
  const io = typeof at(server, 'of') === 'function' ? server : at(server, 'server');
  if (typeof at(io, 'of') !== 'function') return false;
  const namespace = (io as { of(name: string): unknown }).of('/');
  const transports = at(io, 'engine', 'opts', 'transports');
  const isPolled = Array.isArray(transports) && transports.includes('polling');
  const isRelayed = at(io, 'engine', CLUSTER_SESSIONS) === true;
  return IN_PROCESS.has(classOf(at(namespace, 'adapter'))) || (isPolled && !isRelayed);
}

/**
 * A line for each thing in the app that does not fit several workers. Reads tokens, class names and
 * metadata, without loading Nest or the libraries.
 */
export function startWarnings(
  app: object,
  ignore: readonly FindingName[],
  workers: number,
): string[] {
  if (workers < 2) return [];
  const { container, socketModule } = app as NestApp;
  const modules = [...(container?.getModules?.().values() ?? [])];
  const hosts = socketModule?.socketsContainer?.getAll?.().values() ?? [];
  const facts: Facts = {
    providers: modules.flatMap(({ metatype, providers }) =>
      [...(providers ?? [])].map(([token, { instance }]) => ({
        module: metatype?.name ?? '',
        token,
        instance,
      })),
    ),
    socketServers: [...hosts].map(({ server }) => server),
  };
  const checks = Object.entries(CHECKS) as [FindingName, Check][];
  return checks.flatMap(([name, check]) => {
    if (ignore.includes(name)) return [];
    try {
      const line = check(facts);
      return line === undefined ? [] : `${line}; ${silencedBy(name)}`;
    } catch {
      return []; // an unexpected version of a library
    }
  });
}

/** The name of an object's class, without the number that a bundler may have added (`Adapter$1`). */
function classOf(value: unknown): string {
  const name = at(value, 'constructor', 'name');
  return typeof name === 'string' ? name.replace(/\$\d+$/, '') : '';
}

/** The value at a path of properties; `undefined` if a property on the path is missing. */
function at(value: unknown, ...path: (string | symbol)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      (typeof inner === 'object' && inner !== null) || typeof inner === 'function'
        ? (Reflect.get(inner, key) as unknown)
        : undefined,
    value,
  );
}
