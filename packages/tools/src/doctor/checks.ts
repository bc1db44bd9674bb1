import { Module } from 'node:module';
import { totalmem } from 'node:os';
import { types } from 'node:util';
import v8 from 'node:v8';
import {
  type AppView,
  at,
  type Check,
  type Class,
  classOf,
  type Member,
  metadataOf,
  nameOf,
  prototypesOf,
  surge,
} from './finding.js';

/** Measured memory of the primary, rounded up. */
const PRIMARY_BYTES = 64 * 1_024 * 1_024;

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

/** Checks that the memory is sufficient for all workers, assuming that each needs as much as this process. */
export const memory = (
  residentBytes = () => process.memoryUsage.rss(),
  availableBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity),
): Check => ({
  name: 'memory',
  remedy: 'start fewer workers (CLUSTER_WORKERS), or give them more memory',
  look: (_app, { workers }) => {
    const each = residentBytes();
    const needed = each * (workers + surge(workers)) + PRIMARY_BYTES;
    const where = 'this machine or its control group';
    const problem = `a worker uses ${megabytes(each)} before its first request; ${workers} workers (plus ${surge(workers)} during a reload) and the primary need ${megabytes(needed)}, but only ${megabytes(availableBytes)} is available`;
    return needed <= availableBytes ? [] : [{ where, problem }];
  },
});

export const inProcessEvents: Check = {
  name: 'in-process-events',
  remedy:
    "provide ClusterPubSub from '@nestjs-cluster/shared/events' instead, or a Redis PubSub for several machines",
  look: (app) =>
    [...pubSubsOf(app).values()].map((where) => ({
      where,
      problem: 'a published event reaches only the subscribers in the same worker',
    })),
};

/** Maps each graphql-subscriptions PubSub to the provider or controller that is or holds it. */
function pubSubsOf({ providers, controllers }: AppView): ReadonlyMap<unknown, string> {
  const places = new Map<unknown, string>();
  for (const member of [...providers, ...controllers]) {
    if (isPubSub(member.instance)) places.set(member.instance, nameOf(member));
  }
  for (const member of [...providers, ...controllers]) {
    for (const value of fieldsOf(member)) {
      if (isPubSub(value) && !places.has(value)) places.set(value, nameOf(member));
    }
  }
  return places;
}

/** Returns own field values, without calling getters or proxies. */
function fieldsOf({ instance }: Member): unknown[] {
  if (types.isProxy(instance) || Array.isArray(instance) || ArrayBuffer.isView(instance)) return [];
  return Object.values(Object.getOwnPropertyDescriptors(Object(instance))).map(
    ({ value }) => value as unknown,
  );
}

/** Also checks the methods, because several libraries have a class with this name. */
function isPubSub(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || types.isProxy(value)) return false;
  const iterates = 'asyncIterableIterator' in value || 'asyncIterator' in value;
  if (!iterates || !('publish' in value)) return false;
  for (let each: unknown = value; each !== null; each = Object.getPrototypeOf(each) as unknown) {
    if (classOf(each) === 'PubSub') return true;
  }
  return false;
}

export const schemaSynchronization: Check = {
  name: 'schema-synchronization',
  remedy: 'set it to false, and run migrations during the deploy, before the app starts',
  look: ({ providers }) =>
    providers
      .filter(({ instance }) => classOf(instance) === 'DataSource')
      .flatMap((provider) =>
        alterings(at(provider.instance, 'options')).map((option) => ({
          where: nameOf(provider),
          problem: `TypeORM has ${option}: true, so several workers alter the schema at the same time`,
        })),
      ),
};

/** The enabled options that alter a shared schema. An in-memory database is not shared. */
function alterings(options: unknown): string[] {
  const isShared =
    typeof at(options, 'type') === 'string' && at(options, 'database') !== ':memory:';
  return ['synchronize', 'migrationsRun'].filter((name) => isShared && at(options, name) === true);
}

/** Matches files of the libraries that keep sessions in a `MemoryStore` class. Both are CommonJS. */
const LIBRARY = /[\\/]node_modules[\\/](express-session|@fastify[\\/]session)[\\/]/;

/**
 * Finds sessions in memory. The store is in a closure of the middleware and cannot be read, so the
 * check counts the stores on the heap. The count takes as long as a full garbage collection, too long
 * for a worker that serves requests.
 */
export const sessions: Check = {
  name: 'sessions',
  remedy:
    'give the session middleware a store that all workers share, such as connect-redis, or keep the session in the cookie',
  look: () => {
    const { _cache: cache } = Module as unknown as {
      _cache?: Readonly<Record<string, { readonly exports?: unknown } | undefined>>;
    };
    return Object.entries(cache ?? {}).flatMap(([file, module]) => {
      const library = LIBRARY.exec(file)?.[1];
      const { MemoryStore } = Object(module?.exports) as { MemoryStore?: unknown };
      if (library === undefined || typeof MemoryStore !== 'function') return [];
      if (v8.queryObjects(MemoryStore as never, { format: 'count' }) === 0) return [];
      return [
        {
          where: `MemoryStore of ${library}`,
          problem:
            'sessions are stored in the memory of one worker, so other workers cannot read them',
        },
      ];
    });
  },
};

/** Matches `this.server.clients` in a class's source. A ws server's set has only the clients of its own process. */
const CLIENTS = /\.\s*clients\b/;

export const webSocketBroadcast: Check = {
  name: 'web-socket-broadcast',
  remedy:
    "publish it with ClusterEvents from '@nestjs-cluster/shared/events', and send it to each worker's clients in an @OnEvent() handler",
  look: ({ providers, socketServers }) =>
    // A ws server has a set of clients. A Socket.IO server has namespaces.
    socketServers.some((server) => at(server, 'clients') instanceof Set)
      ? providers
          .filter(({ type }) => type && metadataOf('websockets:is_gateway', type) === true)
          .filter(({ type }) => CLIENTS.test(String(type)))
          .map((gateway) => ({
            where: nameOf(gateway),
            problem: 'a broadcast over server.clients reaches only the WebSockets of one worker',
          }))
      : [],
};

/** `RequestMethod.GET` of @nestjs/common, a value of the 'method' metadata. */
const GET = 0;

export const ownHealth: Check = {
  name: 'own-health',
  remedy:
    'remove it and use /health from ClusterModule.forRoot(), or inject ClusterHealthIndicator, which covers all workers',
  look: (app) =>
    find(app, /^\/healthz?(\/(live|ready))?\/?$/i, 'it reports the health of one worker only'),
};

export const ownMetrics: Check = {
  name: 'own-metrics',
  remedy: 'remove it and use /metrics from ClusterModule.forRoot(), which merges all workers',
  look: (app) => find(app, /^\/metrics\/?$/i, 'each scrape reads the counters of only one worker'),
};

function find({ controllers }: AppView, path: RegExp, problem: string) {
  return controllers.flatMap(({ type, instance, module }) => {
    if (type === undefined || knowsCluster(instance)) return [];
    return prototypesOf(type)
      .flatMap((owner) => Object.entries(Object.getOwnPropertyDescriptors(owner)))
      .filter(([, { value }]) => typeof value === 'function' && answers(type, value, path))
      .map(([name]) => ({ where: `${type.name}.${name}() (${module})`, problem }));
  });
}

/** Whether a method answers GET on a path. Ignores the app's prefixes and versions. */
function answers(type: Class, method: object, path: RegExp): boolean {
  if (metadataOf('method', method) !== GET) return false;
  return pathsOf(type).some((prefix) =>
    pathsOf(method).some((end) => path.test(`/${prefix}/${end}`.replaceAll(/\/+/g, '/'))),
  );
}

function knowsCluster(controller: unknown): boolean {
  return Object.values(Object(controller)).some(
    (each) => classOf(each) === 'ClusterHealthIndicator',
  );
}

function pathsOf(target: object): string[] {
  return [metadataOf('path', target) ?? []].flat().filter((path) => typeof path === 'string');
}

/** Metadata key of the Map in which `@CpuBound()` stores a class's methods by name. */
const DEFINITIONS = Symbol.for('nestjs-cluster.cpu-bound');

export const cpuBoundInline: Check = {
  name: 'cpu-bound-inline',
  remedy: 'import ClusterModule.forRoot() in the root module',
  look: ({ controllers, providers }) =>
    // `Offload` is the provider of ClusterModule that runs the methods in threads.
    providers.some(({ instance }) => classOf(instance) === 'Offload')
      ? []
      : [...controllers, ...providers]
          .filter(
            ({ type }) =>
              type && prototypesOf(type).some((each) => Object.hasOwn(each, DEFINITIONS)),
          )
          .map(({ type, module }) => ({
            where: `${type!.name} (${module})`,
            problem:
              '@CpuBound() methods run on the event loop, because the app has no ClusterModule',
          })),
};
