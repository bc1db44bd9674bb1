import 'reflect-metadata';
import { Controller, Get } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { PubSub } from 'graphql-subscriptions';
import { CpuBound } from 'nestjs-cluster';
import { runInThisContext } from 'node:vm';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  cpuBoundInline,
  inProcessEvents,
  memory,
  ownHealth,
  ownMetrics,
  schemaSynchronization,
  webSocketBroadcast,
} from '../../../src/doctor/checks.js';
import { databasePool } from '../../../src/doctor/database-pool.js';
import {
  type AppView,
  type Check,
  type Class,
  findingsOf,
  type Member,
} from '../../../src/doctor/finding.js';
import { SignalListeners } from '../../../src/doctor/signal-listeners.js';

const NOTHING: AppView = { providers: [], controllers: [], socketServers: [] };

/** A provider or controller of AppModule. */
function member(instance: unknown, token: unknown = 'TOKEN', type?: Class): Member {
  return { module: 'AppModule', token, type, instance };
}

function ofClass(type: new () => unknown): Member {
  return member(new type(), type, type);
}

/** The findings of a check for eight workers, one line each. */
function look(check: Check, app: Partial<AppView>, maxConnections?: number): string[] {
  const found = findingsOf([check], { ...NOTHING, ...app }, { workers: 8, maxConnections });
  return found.map(({ where, problem }) => `${where}: ${problem}`);
}

describe('endpoints of the app', () => {
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

  it('are found by their paths, unless they know all workers', () => {
    const controllers = [Probes, Numbers, Informed].map(ofClass);

    expect(look(ownHealth, { controllers })).toEqual([
      expect.stringMatching(/^Probes\.live\(\) \(AppModule\): /),
    ]);
    expect(look(ownMetrics, { controllers })).toEqual([
      expect.stringMatching(/^Numbers\.metrics\(\) \(AppModule\): /),
    ]);
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

  it.each([
    ['TypeORM, 20', new DataSource({ type: 'postgres', extra: { max: 20 } }), 20],
    ['TypeORM, by poolSize', new DataSource({ type: 'mysql', poolSize: 31 }), 31],
    ['TypeORM, by default', new DataSource({ type: 'postgres' }), 10],
    ['TypeORM, of a file', new DataSource({ type: 'better-sqlite3' }), undefined],
    [
      'Prisma 7',
      new PrismaClient('postgresql', { adapter: { externalPool: { options: { max: 22 } } } }),
      22,
    ],
    ['Prisma 7, by default', new PrismaClient('mysql', { adapter: {} }), 10],
    ['Prisma before 7', new PrismaClient('mysql', {}), undefined],
    ['Knex', knex('pg', 23), 23],
    ['Knex, of a file', knex('better-sqlite3', 1), undefined],
    ['Mongoose', new NativeConnection(101), 101],
    ['a class of the same name', new (class DataSource {})(), undefined],
  ])('is read of %s', (_, instance, size) => {
    const providers = [member(instance)];
    const reads = (maxConnections: number) => look(databasePool, { providers }, maxConnections);

    expect(reads(1)).toEqual(
      size === undefined ? [] : [expect.stringContaining(`connections with pools of ${size}; `)],
    );
    // Eight workers, and two more during a reload.
    if (size !== undefined)
      expect([reads(size * 10), reads(size * 10 - 1).length]).toEqual([[], 1]);
  });

  it.each([
    ['PostgreSQL', 'pg', 10, 11],
    ['MySQL', 'mysql2', 15, 16],
  ])('is compared with the default of %s', (name, client, fits, exceeds) => {
    const find = (max: number) => look(databasePool, { providers: [member(knex(client, max))] });

    expect(find(fits)).toEqual([]);
    expect(find(exceeds)).toEqual([expect.stringContaining(`; ${name} allows`)]);
  });
});

it.each([
  [{ type: 'postgres', synchronize: true }, 'synchronize'],
  [{ type: 'sqlite', database: 'a.db', synchronize: true }, 'synchronize'],
  [{ type: 'postgres', migrationsRun: true }, 'migrationsRun'],
  [{ type: 'sqlite', database: ':memory:', synchronize: true }, undefined],
  [{ type: 'postgres' }, undefined],
  [{ synchronize: true }, undefined],
])('a DataSource with %j alters a shared schema by: %s', (options, option) => {
  class DataSource {
    readonly options = options;
  }
  const line = `DataSource (AppModule): TypeORM has ${option}: true, so several workers alter the schema at the same time`;

  expect(look(schemaSynchronization, { providers: [ofClass(DataSource)] })).toEqual(
    option === undefined ? [] : [line],
  );
});

describe('a PubSub', () => {
  class Resolver {
    constructor(readonly events: unknown) {}
  }
  class ClusterPubSub {
    publish() {}
    asyncIterableIterator() {}
  }
  const places = (...providers: Member[]) =>
    look(inProcessEvents, { providers }).map((line) => line.split(': ')[0]);

  it('is found as a provider or in a field, and once for all that hold it', () => {
    const pubSub = new PubSub();

    expect(places(member(new Resolver(pubSub)), member(pubSub, 'PUB_SUB'))).toEqual([
      'PUB_SUB (AppModule)',
    ]);
    expect(places(member(new Resolver(pubSub)))).toEqual(['TOKEN (AppModule)']);
    expect(places(ofClass(class Comments extends PubSub {}))).toEqual(['Comments (AppModule)']);
  });

  it.each([
    ['ClusterPubSub', new ClusterPubSub()],
    ['a PubSub that publishes elsewhere', new (class PubSub {})()],
    ['an EventEmitter', process],
  ])('is not %s', (_, value) => {
    expect(places(member(value), member(new Resolver(value)))).toEqual([]);
  });

  it('is looked for without running getters and proxies', () => {
    const run = vi.fn<() => PubSub>(() => new PubSub());
    const lazy = Object.defineProperty({}, 'own', { enumerable: true, get: run });
    const proxy = new Proxy(lazy, { get: run, getOwnPropertyDescriptor: run as never });

    expect(places(member(lazy), member(proxy), member(new Resolver(proxy)))).toEqual([]);
    expect(run).not.toHaveBeenCalled();
  });
});

describe('a gateway', () => {
  class Chat {
    server!: { readonly clients: ReadonlySet<{ send(text: string): void }> };
    shout(text: string) {
      for (const client of this.server.clients) client.send(text);
    }
  }
  class Echo {
    echo(text: string) {
      return text;
    }
  }
  for (const gateway of [Chat, Echo]) WebSocketGateway()(gateway);

  it.each([
    ['that broadcasts over server.clients of ws', { clients: new Set() }, Chat, 1],
    ['that answers its own client', { clients: new Set() }, Echo, 0],
    ['of another library', { sockets: {} }, Chat, 0],
  ])('%s: %j, %o: %i findings', (_, server, gateway, count) => {
    const app = { providers: [ofClass(gateway)], socketServers: [server] };

    expect(look(webSocketBroadcast, app)).toHaveLength(count);
  });
});

it('@CpuBound() methods are found in an app without ClusterModule', () => {
  class Sums {
    @CpuBound() async add() {}
  }
  class Offload {}
  const providers = [ofClass(class MoreSums extends Sums {}), ofClass(class Cats {})];

  expect(look(cpuBoundInline, { providers })).toEqual([
    expect.stringMatching(/^MoreSums \(AppModule\): @CpuBound\(\) methods run on the event loop/),
  ]);
  expect(look(cpuBoundInline, { providers: [...providers, ofClass(Offload)] })).toEqual([]);
});

it('memory is enough for the workers, two more during a reload, and the primary', () => {
  const needed = 10 * 100e6 + 64 * 1_024 * 1_024;
  const given = (bytes: number) =>
    look(
      memory(() => 100e6, bytes),
      {},
    );

  expect(given(needed)).toEqual([]);
  expect(given(needed - 1)).toEqual([
    'this machine or its control group: a worker uses 100 MB before its first request; 8 workers (plus 2 during a reload) and the primary need 1067 MB, but only 1067 MB is available',
  ]);
});

describe('listeners for signals', () => {
  /** Code that looks as if it were in another file. */
  const call = (filename: string) =>
    runInThisContext('(add) => add()', { filename }) as (add: () => unknown) => void;
  const answer = (): void => {};

  it('are found by the line that adds them, while the app starts', () => {
    const listeners = new SignalListeners();
    onTestFinished(() => {
      for (const signal of ['SIGHUP', 'SIGUSR2']) process.off(signal, answer);
    });
    process.on('SIGHUP', answer);
    process.on('SIGUSR2', answer);
    const found = listeners.end();
    process.on('SIGHUP', answer);
    process.off('SIGHUP', answer);

    expect(found.map(({ where }) => where)).toEqual([
      expect.stringMatching(/^\/.*checks\.test\.ts:\d+$/),
    ]);
    expect(listeners.end()).toEqual(found);
  });

  it.each([
    { by: '/app/dist/main.js', count: 1 },
    { by: '/app/node_modules/@nestjs/core/nest-application-context.js', count: 0 },
    { by: new URL('../../../../../dist/any.js', import.meta.url).pathname, count: 0 },
  ])('that $by adds are found: $count', ({ by, count }) => {
    const listeners = new SignalListeners();
    onTestFinished(() => void process.off('SIGHUP', answer));
    const add = runInThisContext("(answer) => process.on('SIGHUP', answer)", {
      filename: by,
    }) as (answer: () => void) => void;
    call('/app/dist/app.js')(() => add(answer));

    expect(listeners.end()).toHaveLength(count);
  });
});

it('a check that fails finds nothing', () => {
  const fails: Check = {
    ...databasePool,
    look: () => {
      throw new TypeError('getClient() needs a connection');
    },
  };
  expect(look(fails, {})).toEqual([]);
});
