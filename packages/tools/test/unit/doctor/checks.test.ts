import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as setImmediatePromise } from 'node:timers/promises';
import { runInThisContext } from 'node:vm';
import { Controller, Get } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { WebSocketGateway } from '@nestjs/websockets';
import { describe, expect, it, onTestFinished } from 'vitest';
import { OWN_DIRECTORY } from '../../../../src/contract/process/own-directory.js';
import { SignalListeners } from '../../../../src/tools/doctor/app/signal-listeners.js';
import { databasePool } from '../../../../src/tools/doctor/checks/database-pool.js';
import {
  forceCloseConnections,
  keepAlive,
} from '../../../../src/tools/doctor/checks/http-server.js';
import { memory } from '../../../../src/tools/doctor/checks/memory.js';
import { ownHealth, ownMetrics } from '../../../../src/tools/doctor/checks/own-endpoints.js';
import { schemaSynchronization } from '../../../../src/observe/findings/checks/schema-synchronization.js';
import { selfRestart } from '../../../../src/tools/doctor/checks/self-restart.js';
import { webSocketBroadcasts } from '../../../../src/tools/doctor/checks/web-socket-broadcasts.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';
import { appOf, look, SITUATION } from '../../support/app-findings.js';

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
    @Get('health/of-the-bank') bank() {}
  }

  class ClusterHealthIndicator {}
  class Informed extends Probes {
    readonly cluster = new ClusterHealthIndicator();
  }
  Controller('health')(Informed);

  it('are found by what they answer to', async () => {
    const app = await appOf({ controllers: [Probes, Numbers] });

    expect(look(ownHealth, app, SITUATION)).toEqual([
      expect.stringMatching(/^Probes\.live\(\) \(AppModule\): /),
    ]);
    expect(look(ownMetrics, app, SITUATION)).toEqual([
      expect.stringMatching(/^Numbers\.metrics\(\) \(AppModule\): /),
    ]);
  });

  it('are right where they know the cluster', async () => {
    const app = await appOf({ controllers: [Informed] });

    expect(look(ownHealth, app, SITUATION)).toEqual([]);
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

  it.each([
    ['TypeORM, 20', new DataSource({ type: 'postgres', extra: { max: 20 } }), 20],
    ['TypeORM, by poolSize', new DataSource({ type: 'mysql', poolSize: 31 }), 31],
    ['TypeORM, by default', new DataSource({ type: 'postgres' }), 10],
    ['TypeORM, of a file', new DataSource({ type: 'better-sqlite3' }), undefined],
    ['Prisma, by its URL', new PrismaClient('postgresql', url('p://h/d?connection_limit=21')), 21],
    ['Prisma, by default', new PrismaClient('postgresql', url('p://h/d')), undefined],
    [
      'Prisma, by its adapter',
      new PrismaClient('postgresql', { adapter: { externalPool: { options: { max: 22 } } } }),
      22,
    ],
    ['Knex', knex('pg', 23), 23],
    ['Knex, of a file', knex('better-sqlite3', 1), undefined],
    ['Mongoose', new NativeConnection(101), 101],
    ['a class of the same name', new (class DataSource {})(), undefined],
  ])('is read of %s', async (_, instance, size) => {
    const app = await appOf({ providers: [{ provide: 'DB', useValue: instance }] });
    const reads = (maxConnections: number) =>
      look(databasePool, app, { ...SITUATION, maxConnections });

    expect(reads(1)).toEqual(
      size === undefined ? [] : [expect.stringContaining(`pools of ${size} connections in 4`)],
    );
    // Four workers, and the one more of a reload.
    if (size !== undefined) expect([reads(size * 5), reads(size * 5 - 1).length]).toEqual([[], 1]);
  });

  it.each([
    ['PostgreSQL', 'pg', 20, 21],
    ['MySQL', 'mysql2', 30, 31],
  ])('is held against what %s allows by default', async (name, client, fits, exceeds) => {
    const find = async (max: number) => {
      const pool = { provide: 'DB', useValue: knex(client, max) };
      return look(databasePool, await appOf({ providers: [pool] }), SITUATION);
    };

    expect(await find(fits)).toEqual([]);
    expect(await find(exceeds)).toEqual([expect.stringContaining(`; ${name} allows`)]);
  });
});

describe('a schema that TypeORM synchronizes', () => {
  class DataSource {
    constructor(readonly options: object) {}
  }

  it.each([
    ['is found', { type: 'postgres', synchronize: true }, 'synchronize'],
    ['is found in a file', { type: 'sqlite', database: 'a.db', synchronize: true }, 'synchronize'],
    ['is found where migrations do it', { type: 'postgres', migrationsRun: true }, 'migrationsRun'],
    ['is no finding in memory', { type: 'sqlite', database: ':memory:', synchronize: true }, ''],
    ['is no finding where it is off', { type: 'postgres', synchronize: false }, ''],
    ['is no finding where nothing is said', { type: 'postgres' }, ''],
    ['is no finding in another library', { synchronize: true }, ''],
  ])('%s: %j', async (_, options, option) => {
    const provider = { provide: DataSource, useFactory: () => new DataSource(options) };
    // @nestjs/typeorm adds another token for the same instance. It is not a second finding.
    const alias = { provide: 'Connection', useExisting: DataSource };
    const app = await appOf({ providers: [provider, alias] });
    const found = look(schemaSynchronization, app, SITUATION);
    const line = `DataSource (AppModule): TypeORM has ${option}: true, so several workers alter the schema at once`;
    expect(found).toEqual(option === '' ? [] : [line]);
  });
});

describe('a gateway of ws', () => {
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
    ['broadcasts over server.clients', WsAdapter, Chat, 1],
    ['answers its own client', WsAdapter, Echo, 0],
    ['has the name of another library’s field', IoAdapter, Chat, 0],
  ])('that %s (%o, %o) has %i findings', async (_, Adapter, gateway, count) => {
    const app = await appOf({ providers: [gateway] }, undefined, (each) =>
      each.useWebSocketAdapter(new Adapter(each)),
    );
    expect(look(webSocketBroadcasts, app, SITUATION)).toEqual(
      Array.from(
        { length: count },
        () =>
          'Chat (AppModule): a broadcast over server.clients reaches the WebSockets of one worker',
      ),
    );
  });
});

describe('the HTTP server', () => {
  it.each([
    { keepAliveTimeout: 5_000, trusts: false, proxy: undefined, found: false },
    { keepAliveTimeout: 5_000, trusts: true, proxy: undefined, found: true },
    { keepAliveTimeout: 60_000, trusts: true, proxy: undefined, found: true },
    { keepAliveTimeout: 60_001, trusts: true, proxy: undefined, found: false },
    { keepAliveTimeout: 0, trusts: true, proxy: undefined, found: false },
    { keepAliveTimeout: 5_000, trusts: true, proxy: 4_000, found: false },
    { keepAliveTimeout: 5_000, trusts: false, proxy: 6_000, found: true },
  ])(
    'that keeps connections for $keepAliveTimeout ms, trusts a proxy: $trusts of $proxy ms: $found',
    async ({ keepAliveTimeout, trusts, proxy, found }) => {
      const adapter = new FastifyAdapter({ trustProxy: trusts, keepAliveTimeout });
      const fastify = await appOf({}, adapter);
      const express = await appOf({});
      if (trusts)
        (express as unknown as { set(key: string, on: boolean): void }).set('trust proxy', true);
      Object.assign(express.getHttpServer() as object, { keepAliveTimeout });
      const situation = { ...SITUATION, proxyKeepAliveMs: proxy };

      const counts = [fastify, express].map((app) => look(keepAlive, app, situation).length);
      expect(counts).toEqual(found ? [1, 1] : [0, 0]);
    },
  );

  it('is asked to close connections by force only where an option says so', async () => {
    expect(look(forceCloseConnections, await appOf({}), SITUATION)).toEqual([]);
  });
});

describe('an app that restarts itself', () => {
  it('is found in the sources in and below the directory of its main file', () => {
    const directory = temporaryDirectory();
    const write = (name: string, ...lines: string[]) => {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), lines.join('\n'));
    };
    write('main.js', 'bootstrap();');
    write(
      'config/stop.js',
      '',
      '    setTimeout(() => process.kill(process.pid, "SIGTERM"), 5000);',
    );
    write('config/stop.d.ts', '// process.kill(process.pid)', ' * process.kill(process.pid)');
    write('again.mjs', "process.kill(process.pid,'SIGHUP')", 'process.kill(process.pid);');
    write('reraise.js', 'process.kill(process.pid, signal); process.kill(process.pid, "SIGUSR2")');
    write('node_modules/lib/index.js', 'process.kill(process.pid, "SIGTERM")');
    const situation = { ...SITUATION, main: join(directory, 'main.js') };

    const problem =
      'only the worker that runs this line is replaced, and the others stay as they are';
    expect(look(selfRestart, {}, situation).sort()).toEqual([
      `${directory}/again.mjs:1: ${problem}`,
      `${directory}/again.mjs:2: ${problem}`,
      `${directory}/config/stop.js:2: ${problem}`,
    ]);
  });
});

describe('memory', () => {
  const MB = 1e6;
  const reading = (availableBytes: number) =>
    memory(() => ({ residentBytes: 100 * MB, availableBytes, limitedBy: 'this machine' }));

  it('is enough for the workers, the one more of a reload, and the primary', () => {
    const needed = 5 * 100 * MB + 64 * 1_024 * 1_024;

    expect(look(reading(needed), {}, SITUATION)).toEqual([]);
    expect(look(reading(needed - 1), {}, SITUATION)).toEqual([
      'this machine: a worker that has served nothing yet holds 100 MB; 4 of them, the one more of a reload and the primary are 567 MB, and there are 567 MB',
    ]);
  });
});

describe('listeners to signals', () => {
  it('are those of the app, by the line that adds them, and only while it is looked at', async () => {
    const listeners = new SignalListeners();
    const answer = (): void => {};
    process.on('SIGHUP', answer);
    process.on('SIGUSR2', answer);
    const app = await appOf({});
    app.enableShutdownHooks(['SIGTERM']);
    onTestFinished(() => {
      for (const signal of ['SIGHUP', 'SIGUSR2']) process.off(signal, answer);
    });

    const found = listeners.end();
    process.on('SIGHUP', answer);
    process.off('SIGHUP', answer);

    expect(found.map(({ name, where }) => `${name} ${where}`)).toEqual([
      expect.stringMatching(/^signal-listener .*checks\.test\.ts:\d+$/),
      expect.stringMatching(/^shutdown-hooks .*checks\.test\.ts:\d+$/),
    ]);
    expect(listeners.end()).toEqual(found);
  });

  it('are in the package that calls Nest, if no code of the app does', async () => {
    const listeners = new SignalListeners();
    const app = await appOf({});
    const own = runInThisContext('(call, app) => call(app)', {
      filename: `${OWN_DIRECTORY}bootstrap/bootstrap.js`,
    }) as (...args: unknown[]) => void;
    const call = runInThisContext("(app) => app.enableShutdownHooks(['SIGTERM'])", {
      filename: '/app/node_modules/framework/index.js',
    });
    // In a callback of Node, so that this test is not on the stack.
    setImmediate(own, call, app);
    await setImmediatePromise();

    expect(listeners.end().map(({ name, where }) => `${name} ${where}`)).toEqual([
      'shutdown-hooks /app/node_modules/framework/index.js:1',
    ]);
  });

  it('are not those that this package adds when the app calls it', () => {
    const listeners = new SignalListeners();
    const answer = (): void => {};
    onTestFinished(() => void process.off('SIGHUP', answer));
    const own = runInThisContext("(process, answer) => process.on('SIGHUP', answer)", {
      filename: `${OWN_DIRECTORY}bootstrap/bootstrap.js`,
    }) as (...args: unknown[]) => void;
    own(process, answer);

    expect(listeners.end()).toEqual([]);
  });
});
