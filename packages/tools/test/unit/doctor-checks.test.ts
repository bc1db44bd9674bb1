import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AppView } from '../../src/doctor/app-view.js';
import { databasePool } from '../../src/doctor/checks/database-pool.js';
import { memory } from '../../src/doctor/checks/memory.js';
import { ownHealth, ownMetrics } from '../../src/doctor/checks/own-endpoints.js';
import { schemaSynchronization } from '../../src/doctor/checks/schema-synchronization.js';
import { findingOf } from '../../src/doctor/examine-app.js';
import { type Check, findingsOf } from '../../src/doctor/finding.js';
import { SignalListeners } from '../../src/doctor/signal-listeners.js';

const WORKERS = 4;

async function appOf(metadata: Parameters<typeof Module>[0]) {
  @Module(metadata)
  class AppModule {}
  const app = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
  onTestFinished(() => app.close());
  return app.init();
}

/** The findings of a check, one line each. */
const look = (check: Check, app: object, maxConnections?: number): string[] =>
  findingsOf([check], new AppView(app), { workers: WORKERS, maxConnections }).map(
    ({ where, problem }) => `${where}: ${problem}`,
  );

describe('an endpoint of the app', () => {
  @Controller('healthz')
  class Probes {
    @Get('live') live() {}
  }

  @Controller()
  class Numbers {
    @Get('metrics') metrics() {}
    @Get('metrics/custom') custom() {}
    @Get('patients/health') health() {}
  }

  class ClusterHealthIndicator {}
  class Informed extends Probes {
    readonly cluster = new ClusterHealthIndicator();
  }
  Controller('health')(Informed);

  it('is found by its path', async () => {
    const app = await appOf({ controllers: [Probes, Numbers] });

    expect(look(ownHealth, app)).toEqual([
      expect.stringMatching(/^Probes\.live\(\) \(AppModule\): /),
    ]);
    expect(look(ownMetrics, app)).toEqual([
      expect.stringMatching(/^Numbers\.metrics\(\) \(AppModule\): /),
    ]);
  });

  it('is no finding if it has the indicator of the cluster', async () => {
    expect(look(ownHealth, await appOf({ controllers: [Informed] }))).toEqual([]);
  });
});

describe('a pool of database connections', () => {
  class DataSource {
    driver = {};
    constructor(readonly options: object) {}
  }
  class PrismaClient {
    constructor(
      readonly _activeProvider: string,
      readonly _engineConfig: object,
    ) {}
    async $connect() {}
  }
  class NativeConnection {
    models = {};
    constructor(readonly maxPoolSize: number) {}
    getClient() {
      return { options: { maxPoolSize: this.maxPoolSize } };
    }
  }
  const knex = (client: string, max: number) =>
    Object.assign(() => {}, { client: { config: { client }, pool: { max } } });
  const url = (value: string) => ({ inlineDatasources: { db: { url: { value } } } });
  const appWith = (useValue: object) => appOf({ providers: [{ provide: 'DB', useValue }] });

  it.each([
    ['TypeORM, 20', new DataSource({ type: 'postgres', extra: { max: 20 } }), 20],
    ['TypeORM, by default', new DataSource({ type: 'postgres' }), 10],
    ['TypeORM, in a file', new DataSource({ type: 'better-sqlite3' }), undefined],
    ['Prisma, by its URL', new PrismaClient('postgresql', url('p://h/d?connection_limit=21')), 21],
    [
      'Prisma, by its adapter',
      new PrismaClient('postgresql', { adapter: { externalPool: { options: { max: 22 } } } }),
      22,
    ],
    ['Knex', knex('pg', 23), 23],
    ['Mongoose', new NativeConnection(101), 101],
    ['a class of the same name', new (class DataSource {})(), undefined],
  ])('is read from %s', async (_, instance, size) => {
    const app = await appWith(instance);

    expect(look(databasePool, app, 1)).toEqual(
      size === undefined ? [] : [expect.stringContaining(`pools of ${size} connections in 4`)],
    );
    // Four workers, and the one more of a reload.
    if (size !== undefined) expect(look(databasePool, app, size * 5)).toEqual([]);
  });

  it.each([
    ['PostgreSQL', 'pg', 20],
    ['MySQL', 'mysql2', 30],
  ])('is compared with what %s allows by default', async (name, client, fits) => {
    expect(look(databasePool, await appWith(knex(client, fits)))).toEqual([]);
    expect(look(databasePool, await appWith(knex(client, fits + 1)))).toEqual([
      expect.stringContaining(`; ${name} allows`),
    ]);
  });
});

it.each([
  [{ type: 'postgres', synchronize: true }, 'synchronize'],
  [{ type: 'sqlite', database: 'a.db', migrationsRun: true }, 'migrationsRun'],
  [{ type: 'sqlite', database: ':memory:', synchronize: true }, undefined],
  [{ type: 'postgres', synchronize: false }, undefined],
])('TypeORM with %j alters the schema by %s', async (options, option) => {
  class DataSource {
    readonly options = options;
  }
  // @nestjs/typeorm adds another token for the same instance. It is not a second finding.
  const alias = { provide: 'Connection', useExisting: DataSource };
  const app = await appOf({ providers: [DataSource, alias] });

  expect(look(schemaSynchronization, app)).toEqual(
    option === undefined
      ? []
      : [
          `DataSource (AppModule): TypeORM has ${option}: true, so several workers alter the schema at once`,
        ],
  );
});

it('the memory has to be enough for the workers, the one more of a reload, and the primary', () => {
  const reading = (availableBytes: number) =>
    memory(() => ({ residentBytes: 100e6, availableBytes, limitedBy: 'this machine' }));

  expect(look(reading(570e6), {})).toEqual([]);
  expect(look(reading(570e6 - 1), {})).toEqual([
    expect.stringMatching(/^this machine: a worker .* holds 100 MB; 4 of them, .* are 570 MB/),
  ]);
});

it('a listener to a signal is found by the line that adds it, until the app was examined', async () => {
  const listeners = new SignalListeners();
  const answer = (): void => {};
  onTestFinished(() => {
    for (const signal of ['SIGHUP', 'SIGUSR2']) process.off(signal, answer);
  });
  process.on('SIGHUP', answer);
  process.on('SIGUSR2', answer);
  const app = await appOf({});
  app.enableShutdownHooks(['SIGTERM']);

  const found = listeners.end();
  process.on('SIGHUP', answer);
  process.off('SIGHUP', answer);

  expect(found.map(({ name, where }) => `${name} ${where}`)).toEqual([
    expect.stringMatching(/^signal-listener .*doctor-checks\.test\.ts:\d+$/),
    expect.stringMatching(/^shutdown-hooks .*doctor-checks\.test\.ts:\d+$/),
  ]);
  expect(listeners.end()).toEqual(found);
});

it('a warning of the start becomes a finding with the name that turns it off', () => {
  const warning = "40 threads on 2 cores; use fewer; warnings: { ignore: ['cpu-bound-threads'] }";

  expect(findingOf(warning, 'main.js')).toEqual({
    name: 'cpu-bound-threads',
    level: 'problem',
    where: 'main.js',
    problem: '40 threads on 2 cores',
    remedy: 'use fewer',
  });
});

it('a check that throws finds nothing', () => {
  const broken: Check = {
    name: 'broken',
    remedy: '',
    look() {
      throw new Error('an unexpected version of a library');
    },
  };
  expect(look(broken, {})).toEqual([]);
});
