import { at, type Check, classOf, nameOf, surge } from './finding.js';

/** A connection pool, as read from a library's object. */
interface Pool {
  /** The library's name for the type of database. */
  readonly kind: string;
  readonly size: number;
}

/** The default connection limits of databases. */
const ALLOWED: readonly (readonly [kind: RegExp, name: string, connections: number])[] = [
  [/^(pg|postgres)/i, 'PostgreSQL', 100],
  [/^(mysql|mariadb)/i, 'MySQL', 151],
  // The smallest Atlas clusters allow 500 connections. A self-hosted server allows far more by default.
  [/^mongo/i, 'the smallest MongoDB Atlas cluster', 500],
];

/** File databases, by their names in TypeORM and Knex. They have no connection limit. */
const IN_FILE = /sqlite|sqljs|cordova|expo|capacitor|nativescript|react-native/i;

/** The default size of a pool in pg, mysql2 and Knex's tarn. The MongoDB driver has another default. */
const DEFAULT_SIZE = 10;
const DEFAULT_MONGO_SIZE = 100;

export const databasePool: Check = {
  name: 'database-pool',
  remedy: 'reduce the pool size, or put a pooler such as PgBouncer in front of the database',
  look: ({ providers }, { workers, maxConnections }) =>
    providers.flatMap((provider) => {
      const pool = poolOf(provider.instance);
      const [, database, byDefault] = ALLOWED.find(([kind]) => kind.test(pool?.kind ?? '')) ?? [];
      const allowed = maxConnections ?? byDefault;
      if (pool === undefined || allowed === undefined || IN_FILE.test(pool.kind)) return [];
      const needed = pool.size * (workers + surge(workers));
      if (needed <= allowed) return [];
      const limit =
        maxConnections === undefined
          ? `${database} allows ${allowed} by default`
          : `the database allows ${allowed}`;
      return [
        {
          where: nameOf(provider),
          problem: `${workers} workers, plus ${surge(workers)} during a reload, need ${needed} connections with pools of ${pool.size}; ${limit}`,
        },
      ];
    }),
};

function poolOf(instance: unknown): Pool | undefined {
  return [typeOrm, prisma, knex, mongoose].map((read) => read(instance)).find(Boolean);
}

function typeOrm(instance: unknown): Pool | undefined {
  if (classOf(instance) !== 'DataSource') return undefined;
  const options = at(instance, 'options');
  const kind = at(options, 'type');
  if (typeof kind !== 'string') return undefined;
  const size = [
    at(instance, 'driver', 'master', 'options', 'max'),
    at(options, 'poolSize'),
    at(options, 'extra', 'max'),
    at(options, 'extra', 'connectionLimit'),
    at(options, 'maxPoolSize'),
  ].find((each) => typeof each === 'number');
  return { kind, size: size ?? (kind === 'mongodb' ? DEFAULT_MONGO_SIZE : DEFAULT_SIZE) };
}

/** Prisma 7 has its pool in its adapter. */
function prisma(instance: unknown): Pool | undefined {
  const kind = at(instance, '_activeProvider');
  const adapter = at(instance, '_engineConfig', 'adapter');
  if (typeof kind !== 'string' || adapter === undefined) return undefined;
  const size = at(adapter, 'externalPool', 'options', 'max') ?? at(adapter, 'config', 'max');
  return { kind, size: typeof size === 'number' ? size : DEFAULT_SIZE };
}

/** An instance of Knex is a function. */
function knex(instance: unknown): Pool | undefined {
  const kind = at(instance, 'client', 'config', 'client');
  const size = at(instance, 'client', 'pool', 'max');
  if (typeof instance !== 'function' || typeof size !== 'number') return undefined;
  return typeof kind === 'string' ? { kind, size } : undefined;
}

function mongoose(instance: unknown): Pool | undefined {
  const getClient = at(instance, 'getClient');
  if (typeof getClient !== 'function' || at(instance, 'models') === undefined) return undefined;
  const size = at(getClient.call(instance), 'options', 'maxPoolSize');
  return { kind: 'mongodb', size: typeof size === 'number' ? size : DEFAULT_MONGO_SIZE };
}
