import { CacheModule } from '@nestjs/cache-manager';
import { Injectable } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { ThrottlerModule } from '@nestjs/throttler';
import { WebSocketGateway } from '@nestjs/websockets';
import { Keyv } from 'keyv';
import { Adapter } from 'socket.io-adapter';
import { describe, expect, it } from 'vitest';
import { ClusterScheduleModule } from '../../../src/schedule/index.js';
import { findingsOf, startWarnings, viewOf } from '../../../src/observe/findings.js';
import { appOf } from '../support/nest-app.js';

/** The findings in an app, each as its name and place. */
function found(app: object): string[] {
  return findingsOf(viewOf(app)).map(({ name, where }) => `${name} ${where}`);
}

describe('scheduled jobs', () => {
  @Injectable()
  class Reports {
    @Cron('0 3 * * *') nightly() {}
  }

  it.each([
    ['in a class', [Reports]],
    ['in what a factory makes', [{ provide: 'REPORTS', useFactory: () => new Reports() }]],
    [
      'beside a provider whose constructor is a bound function, as in nestjs-cls',
      [{ provide: 'PROXY', useValue: { constructor: Object.bind(null) } }, Reports],
    ],
  ])('are found %s', async (_, providers) => {
    const app = await appOf({ imports: [ScheduleModule.forRoot()], providers });

    expect(found(app)).toEqual(['scheduled-jobs Reports.nightly() (AppModule)']);
  });

  it.each([
    ['nothing is scheduled', { imports: [ScheduleModule.forRoot()] }],
    ['nothing runs them', { providers: [Reports] }],
    [
      'ClusterScheduleModule runs them in one worker',
      { imports: [ScheduleModule.forRoot(), ClusterScheduleModule], providers: [Reports] },
    ],
  ])('are not found where %s', async (_, metadata) => {
    expect(found(await appOf(metadata))).toEqual([]);
  });
});

const throttlers = [{ ttl: 1_000, limit: 1 }];
const storage = { increment: async () => ({}) as never };

it.each([
  { what: 'counts in memory', given: throttlers, expected: ['throttler ThrottlerModule'] },
  { what: 'has a storage', given: { throttlers, storage }, expected: [] },
])('a throttler that $what: $expected', async ({ given, expected }) => {
  expect(found(await appOf({ imports: [ThrottlerModule.forRoot(given)] }))).toEqual(expected);
});

describe('a cache', () => {
  const shared = {
    get: async () => undefined,
    set: async () => true,
    delete: async () => true,
    clear: async () => {},
  };

  /** Imitates Keyv 6, which is not installed: it has its store in a property, and no options. */
  const keyv6 = new (class Keyv {
    readonly store = new (class KeyvMemoryAdapter {})();
  })();

  it.each([
    { what: 'without a store', stores: undefined, finds: true },
    { what: 'in a Map', stores: [new Keyv({ store: new Map() })], finds: true },
    { what: 'with a shared store', stores: [new Keyv({ store: shared as never })], finds: false },
    {
      what: 'with two levels',
      stores: [new Keyv(), new Keyv({ store: shared as never })],
      finds: false,
    },
  ])('$what is found: $finds', async ({ stores, finds }) => {
    const app = await appOf({ imports: [CacheModule.register(stores && { stores })] });

    expect(found(app)).toEqual(finds ? ['cache CacheModule'] : []);
  });

  it('in memory is found with Keyv 6', async () => {
    const manager = { provide: 'CACHE_MANAGER', useValue: { stores: [keyv6] } };

    expect(found(await appOf({ providers: [manager] }))).toEqual(['cache AppModule']);
  });
});

describe('Socket.IO', () => {
  class Chat {}
  WebSocketGateway()(Chat);

  class RedisAdapter extends Adapter {}

  /** The adapter of another package, with the transports of the server. */
  const adapterWith = (transports: ('polling' | 'websocket')[], sessions: boolean) =>
    class Shared extends IoAdapter {
      override createIOServer(port: number) {
        const server = super.createIOServer(port, { transports } as never);
        server.adapter(RedisAdapter as never);
        Object.assign(server.engine, { [Symbol.for('nestjs-cluster.sessions')]: sessions });
        return server;
      }
    };

  it.each([
    { what: 'its own adapter', Adapter: IoAdapter, finds: true },
    { what: 'a shared adapter and polling', Adapter: adapterWith(['polling'], false), finds: true },
    {
      what: 'a shared adapter without polling',
      Adapter: adapterWith(['websocket'], false),
      finds: false,
    },
    { what: 'the adapter of this package', Adapter: adapterWith(['polling'], true), finds: false },
  ])('with $what is found: $finds', async ({ Adapter, finds }) => {
    const app = await appOf({ providers: [Chat] }, (each) =>
      each.useWebSocketAdapter(new Adapter(each)),
    );

    expect(found(app)).toEqual(finds ? ['socket-io Chat (AppModule)'] : []);
  });
});

describe('a warning', () => {
  it('says what to do and how to silence it', async () => {
    class Job {
      @Cron('0 3 * * *') run() {}
    }
    class Other {
      @Cron('0 3 * * *') run() {}
    }
    const app = await appOf({ imports: [ScheduleModule.forRoot()], providers: [Job, Other] });

    expect(startWarnings(app, [])).toEqual([
      "scheduled jobs run in every worker: Job.run() (AppModule), Other.run() (AppModule); import ClusterScheduleModule.forRoot() from 'nestjs-cluster/schedule' in the app, to run each job in one worker; warnings: { ignore: ['scheduled-jobs'] } in bootstrap() silences this",
    ]);
    expect(startWarnings(app, ['scheduled-jobs'])).toEqual([]);
  });

  it.each([{}, { container: {} }])('is not logged for an unknown kind of app: %j', (app) => {
    expect(startWarnings(app, [])).toEqual([]);
  });

  it('is not logged if a library has an unexpected version', () => {
    const registry = {
      module: 'M',
      token: 'R',
      type: undefined,
      get instance(): unknown {
        throw new Error('another shape');
      },
    };
    const app = { providers: [registry], controllers: [], socketServers: [] };
    expect(findingsOf(app)).toEqual([]);
  });
});
