import { type FindingName, silencedBy } from '../../contract/options/log.js';
import {
  type AppView,
  at,
  type Class,
  classOf,
  metadataOf,
  methodsWith,
  viewOf,
} from './app-view.js';

/** Something in an app that does not work correctly in several workers. */
export interface Finding {
  readonly name: FindingName;
  /** The class and its module. */
  readonly where: string;
  readonly problem: string;
  readonly remedy: string;
}

/** Looks for one kind of finding in an app. Reads tokens, class names and metadata, and loads no library. */
interface Check extends Pick<Finding, 'name' | 'problem' | 'remedy'> {
  /** @returns the places of the problem; empty = no finding. */
  readonly find: (app: AppView) => readonly string[];
}

/** The metadata key that `@Cron()`, `@Interval()` and `@Timeout()` of @nestjs/schedule set on a method. */
const JOB = 'SCHEDULER_TYPE';

const scheduledJobs: Check = {
  name: 'scheduled-jobs',
  problem: 'scheduled jobs run once in every worker',
  remedy:
    "add ClusterScheduleModule of 'nestjs-cluster/schedule' to the imports of the app, which runs them in one worker",
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
  problem: 'each worker counts requests by itself, so a client may send the limit to each of them',
  remedy:
    "set storage: new ClusterThrottlerStorage() of '@nestjs-cluster/shared/throttler' in ThrottlerModule.forRoot()",
  find: ({ providers }) =>
    providers
      .filter(({ instance }) => classOf(instance) === 'ThrottlerStorageService')
      .map(({ module }) => module),
};

/** Classes of stores that live in the process: of JavaScript, cacheable, keyv, lru-cache and quick-lru. */
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
  problem: 'each worker has its own cache, so a value that one deletes stays in the others',
  remedy:
    "set stores: [clusterCache()] of '@nestjs-cluster/shared/cache' in CacheModule.register()",
  find: ({ providers }) =>
    providers
      .filter(({ token }) => token === 'CACHE_MANAGER')
      .filter(({ instance }) => {
        const stores = at(instance, 'stores');
        // A store in the process is fine in front of a shared store: the app accepts that it may be stale.
        return Array.isArray(stores) && stores.length > 0 && stores.every(livesInProcess);
      })
      .map(({ module }) => module),
};

/** Keyv 5 has its store in its options, Keyv 6 in a property. Cacheable has two levels. */
function livesInProcess(keyv: unknown): boolean {
  if (at(keyv, 'secondary') !== undefined) return false;
  const store = at(keyv, 'opts', 'store') ?? at(keyv, 'primary', 'store') ?? at(keyv, 'store');
  return IN_PROCESS.has(classOf(store ?? keyv));
}

/** The adapter of `@nestjs-cluster/socket.io` sets it on Engine.IO. */
const CLUSTER_SESSIONS = Symbol.for('nestjs-cluster.sessions');

const socketIo: Check = {
  name: 'socket-io',
  problem:
    'a broadcast of Socket.IO reaches the clients of one worker, or long polling fails (400, Session ID unknown)',
  remedy: "call app.useWebSocketAdapter(new ClusterIoAdapter(app)) of '@nestjs-cluster/socket.io'",
  find: ({ providers, socketServers }) =>
    socketServers.some(isAlone)
      ? providers
          .filter(({ type }) => type && metadataOf('websockets:is_gateway', type) === true)
          .map(({ type, module }) => `${type!.name} (${module})`)
      : [],
};

/** Whether this is a server of Socket.IO, or a namespace of one, whose adapter or polling knows one process only. */
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

/** A check that throws finds nothing: the app may have an unexpected version of a library. */
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

/** A line for each finding. All workers of an app have the same findings. */
export function startWarnings(app: object, ignore: readonly FindingName[]): string[] {
  return findingsOf(viewOf(app))
    .filter(({ name }) => !ignore.includes(name))
    .map(
      ({ name, where, problem, remedy }) => `${problem}: ${where}; ${remedy}; ${silencedBy(name)}`,
    );
}
