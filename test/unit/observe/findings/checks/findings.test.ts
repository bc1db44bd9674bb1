import { EventEmitter } from 'node:events';
import { CacheModule } from '@nestjs/cache-manager';
import { Controller, Get, Inject, Injectable, type Provider, Sse } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { ThrottlerModule } from '@nestjs/throttler';
import { EventEmitter2 } from 'eventemitter2';
import { PubSub } from 'graphql-subscriptions';
import { Keyv } from 'keyv';
import { BehaviorSubject, NEVER, Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ClusterModule } from '../../../../../src/module/cluster.module.js';
import { CpuBound } from '../../../../../src/offload/index.js';
import { ClusterScheduleModule } from '../../../../../src/integrations/schedule/index.js';
import { AppView } from '../../../../../src/observe/findings/app-view.js';
import { inProcessEvents } from '../../../../../src/observe/findings/checks/in-process-events.js';
import { scheduledJobs } from '../../../../../src/observe/findings/checks/scheduled-jobs.js';
import { type Check, findingsOf } from '../../../../../src/observe/findings/finding.js';
import { CHEAP_CHECKS, startWarnings } from '../../../../../src/observe/findings/start-warnings.js';
import { appOf, look, type Metadata, SITUATION } from '../../../support/app-findings.js';

beforeEach(() => void vi.stubEnv('CLUSTER_OFFLOAD', 'inline'));
afterEach(() => void vi.unstubAllEnvs());

/** Names of what costs nothing to see. */
function cheapNames(app: object): string[] {
  return findingsOf(CHEAP_CHECKS, new AppView(app), SITUATION).map(({ name }) => name);
}

describe('@CpuBound() methods', () => {
  @Controller()
  class Sums {
    @CpuBound() @Get() add() {}
  }
  class MoreSums extends Sums {
    @CpuBound() async multiply() {}
  }

  it('run on the event loop without ClusterModule, whatever the number of workers', async () => {
    const app = await appOf({ controllers: [Sums], providers: [MoreSums] });
    const lines = startWarnings(app, [], 1);
    expect(lines).toEqual([
      "@CpuBound() methods run on the event loop, since the app has no ClusterModule: Sums.add() (AppModule), MoreSums.multiply() (AppModule), MoreSums.add() (AppModule); import ClusterModule.forRoot() into the app; warnings: { ignore: ['cpu-bound-inline'] } of bootstrap() silences this",
    ]);
    expect(startWarnings(app, [], 4)).toEqual(lines);
    expect(startWarnings(app, ['cpu-bound-inline'], 1)).toEqual([]);
  });

  it('are no finding beside ClusterModule, nor are other classes without it', async () => {
    const options = { health: false, metrics: false } as const;
    const imports = [ClusterModule.forRoot(options)];
    expect(cheapNames(await appOf({ imports, controllers: [Sums] }))).toEqual([]);
    @Injectable()
    class Cats {}
    expect(cheapNames(await appOf({ providers: [Cats] }))).toEqual([]);
  });
});

describe('scheduled jobs', () => {
  @Injectable()
  class Reports {
    @Cron('0 3 * * *') nightly() {}
  }

  it('say how often they run with several workers only', async () => {
    const app = await appOf({ imports: [ScheduleModule.forRoot()], providers: [Reports] });
    const where = 'Reports.nightly() (AppModule): scheduled jobs run in every worker';
    expect(look(scheduledJobs, app, SITUATION)).toEqual([`${where}, so 4 times each`]);
    expect(look(scheduledJobs, app, { ...SITUATION, workers: 1 })).toEqual([where]);
    expect(startWarnings(app, [], 1)).toEqual([]);
  });

  it('are named where a factory makes the provider', async () => {
    const reports = { provide: 'REPORTS', useFactory: () => new Reports() };
    const app = await appOf({ imports: [ScheduleModule.forRoot()], providers: [reports] });
    expect(look(scheduledJobs, app, SITUATION)).toEqual([
      'Reports.nightly() (AppModule): scheduled jobs run in every worker, so 4 times each',
    ]);
  });

  it.each([
    ['nothing is scheduled', { imports: [ScheduleModule.forRoot()] }],
    ['nobody runs them', { providers: [Reports] }],
    [
      'one worker alone runs them',
      { imports: [ScheduleModule.forRoot(), ClusterScheduleModule], providers: [Reports] },
    ],
  ])('are none where %s', async (_, metadata) => {
    expect(cheapNames(await appOf(metadata))).toEqual([]);
  });

  it('are found where no decorator has declared them', async () => {
    const app = await appOf({ imports: [ScheduleModule.forRoot()] });
    const timer = setTimeout(() => {}, 1_000);
    onTestFinished(() => clearTimeout(timer));
    app.get(SchedulerRegistry).addTimeout('report', timer);

    expect(startWarnings(app, [], 4)).toEqual([
      "scheduled jobs run in every worker, so 4 times each: ScheduleModule; import ClusterScheduleModule of nestjs-cluster/schedule too, which runs them in one worker; warnings: { ignore: ['scheduled-jobs'] } of bootstrap() silences this",
    ]);
    expect(startWarnings(app, ['scheduled-jobs'], 4)).toEqual([]);
  });
});

describe('a throttler', () => {
  const options = [{ ttl: 1_000, limit: 1 }];
  const storage = {
    increment: async () => ({
      totalHits: 1,
      timeToExpire: 1,
      isBlocked: false,
      timeToBlockExpire: 0,
    }),
  };

  it.each([
    { what: 'counts in memory', given: options, names: ['throttler'] },
    { what: 'has a storage', given: { throttlers: options, storage }, names: [] },
  ])('that $what gives $names', async ({ given, names }) => {
    expect(cheapNames(await appOf({ imports: [ThrottlerModule.forRoot(given)] }))).toEqual(names);
  });
});

describe('a cache', () => {
  const shared = () => ({
    get: async () => undefined,
    set: async () => true,
    delete: async () => true,
    clear: async () => {},
  });

  /** Imitates Keyv 6, which is not installed: it has its store in a property, and no options. */
  const Keyv6 = class Keyv {
    constructor(readonly store: object) {}
  };

  class KeyvMemoryAdapter {}

  it('on Keyv 6 is one whose wrap() finds nothing', async () => {
    const manager = { provide: 'CACHE_MANAGER', useValue: { stores: [new Keyv6(shared())] } };
    const app = await appOf({ providers: [manager] });
    expect(startWarnings(app, [], 4)).toEqual([
      "wrap() of cache-manager computes each time, since it cannot read values of Keyv 6: AppModule; npm install keyv@5; warnings: { ignore: ['cache'] } of bootstrap() silences this",
    ]);
  });

  it('in memory on Keyv 6 is one of each worker', async () => {
    const stores = [new Keyv6(new KeyvMemoryAdapter())];
    const manager = { provide: 'CACHE_MANAGER', useValue: { stores } };
    const [warning] = startWarnings(await appOf({ providers: [manager] }), [], 4);
    expect(warning).toContain('every worker has a cache of its own');
  });

  it.each([
    { what: 'without a store', stores: undefined, names: ['cache'] },
    { what: 'in a Map', stores: new Keyv({ store: new Map() }), names: ['cache'] },
    { what: 'with a store of its own', stores: shared(), names: [] },
    { what: 'with two levels', stores: [new Map(), shared()], names: [] },
  ])('$what gives $names', async ({ stores, names }) => {
    const module = CacheModule.register(stores === undefined ? {} : { stores: stores as never });

    expect(cheapNames(await appOf({ imports: [module] }))).toEqual(names);
  });
});

describe('events inside the process', () => {
  const find = async (metadata: Metadata) =>
    look(inProcessEvents, await appOf(metadata), SITUATION).map((line) => line.split(': ')[0]);

  class Resolver {
    constructor(readonly events: unknown) {}
  }
  const resolver = (events: unknown): Provider => ({
    provide: Resolver,
    useFactory: () => new Resolver(events),
  });

  it('are found in a PubSub that is a provider, once for all that hold it', async () => {
    const pubSub = new PubSub();
    const providers = [{ provide: 'PUB_SUB', useValue: pubSub }, resolver(pubSub)];
    expect(startWarnings(await appOf({ providers }), [], 4)).toEqual([
      "what one worker publishes reaches the subscribers of that worker alone: PUB_SUB (AppModule); provide ClusterPubSub of @nestjs-cluster/shared/events in its place; or, beyond one machine, one in Redis; warnings: { ignore: ['in-process-events'] } of bootstrap() silences this",
    ]);
  });

  it('are found in a PubSub in a field, and in a class that extends PubSub', async () => {
    @Injectable()
    class Comments extends PubSub {}
    expect(await find({ providers: [resolver(new PubSub())] })).toEqual([
      'Resolver.events (AppModule)',
    ]);
    expect(await find({ providers: [Comments] })).toEqual(['Comments (AppModule)']);
  });

  it.each([
    ['ClusterPubSub', new (class ClusterPubSub {})()],
    ['a PubSub that publishes elsewhere', new (class PubSub {})()],
    [
      'an engine of another broker',
      new (class RedisPubSub {
        publish() {}
        asyncIterator() {}
      })(),
    ],
    ['a Subject that no route streams', new Subject()],
    ['an EventEmitter2 that no route streams', new EventEmitter2()],
  ])('are not %s', async (_, value) => {
    const providers = [{ provide: 'VALUE', useValue: value }, resolver(value)];
    expect(await find({ providers })).toEqual([]);
  });

  it('are read of fields that hold data, and of no getter', async () => {
    const run = vi.fn<() => PubSub>(() => new PubSub());
    class Lazy {
      constructor() {
        Object.defineProperty(this, 'own', { enumerable: true, get: run });
      }
      get inherited() {
        return run();
      }
    }
    const proxy = new Proxy(new Lazy(), { get: run, getOwnPropertyDescriptor: run as never });
    const providers = [Lazy, { provide: 'BYTES', useValue: Buffer.alloc(8) }];
    const app = await appOf({ providers: [...providers, resolver(proxy)] });
    run.mockClear(); // Nest has looked at each provider
    expect(look(inProcessEvents, app, SITUATION)).toEqual([]);
    expect(run).not.toHaveBeenCalled();
  });

  describe('behind an @Sse() route', () => {
    class Notifications {
      constructor(readonly sent: unknown) {}
    }
    /** An app whose route streams what `events` has. */
    const streaming = (events: unknown): NonNullable<Metadata> => {
      @Controller()
      class Streams {
        readonly events = events;
        @Sse('stream') stream() {
          return NEVER;
        }
      }
      const known = events instanceof Notifications ? events : new Notifications(undefined);
      return {
        controllers: [Streams],
        providers: [{ provide: Notifications, useFactory: () => known }],
      };
    };

    it.each([
      ['a Subject', new Subject()],
      ['a BehaviorSubject', new BehaviorSubject(0)],
      ['an EventEmitter2', new EventEmitter2()],
      ['an EventEmitter of Node', new EventEmitter()],
    ])('are found in %s of the controller and of a provider that it holds', async (_, events) => {
      expect(await find(streaming(events))).toEqual(['Streams.events (AppModule)']);
      expect(await find(streaming(new Notifications(events)))).toEqual([
        'Notifications.sent (AppModule)',
      ]);
    });

    it('name ClusterEvents as remedy, and are none in a controller that has it', async () => {
      const metadata = streaming(new Subject());
      expect(startWarnings(await appOf(metadata), [], 4)).toEqual([
        "what one worker emits reaches the @Sse() clients of that worker alone: Streams.events (AppModule); emit it with ClusterEvents of @nestjs-cluster/shared/events, whose @OnEvent() handlers run in every worker; or, beyond one machine, by a broker; warnings: { ignore: ['in-process-events'] } of bootstrap() silences this",
      ]);
      class ClusterEvents {}
      const unused = { ...metadata, providers: [...metadata.providers!, ClusterEvents] };
      expect(await find(unused)).toEqual(['Streams.events (AppModule)']);
      expect(await find(streaming(new Notifications(new ClusterEvents())))).toEqual([]);
    });

    it('are not what ends a stream, what a client of a broker has, nor what Nest keeps', async () => {
      class ClientRedis extends class ClientProxy {} {
        readonly status = new Subject();
      }
      class ConfigService {
        readonly changes = new Subject();
      }
      @Controller()
      class Streams {
        readonly destroyed$ = new Subject();
        constructor(
          readonly client: ClientRedis,
          readonly config: ConfigService,
          readonly host: HttpAdapterHost,
        ) {}
        @Sse('stream') stream() {
          return NEVER;
        }
      }
      for (const [index, type] of [ClientRedis, ConfigService, HttpAdapterHost].entries()) {
        Inject(type)(Streams, undefined, index);
      }
      const controllers = [Streams];
      expect(await find({ controllers, providers: [ClientRedis, ConfigService] })).toEqual([]);
    });
  });
});

describe('what cannot be read', () => {
  it.each([{}, { container: {} }, { getHttpAdapter: () => undefined }])(
    'is no finding: %j',
    (app) => {
      expect(startWarnings(app, [], 4)).toEqual([]);
    },
  );

  it('is no finding where a library is another version', () => {
    const fails: Check = {
      ...CHEAP_CHECKS[0]!,
      look: () => {
        throw new TypeError('registry.getCronJobs is not a function');
      },
    };
    expect(look(fails, {}, SITUATION)).toEqual([]);
  });
});
