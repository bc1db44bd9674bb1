import { CacheModule } from '@nestjs/cache-manager';
import { Injectable } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { ThrottlerModule } from '@nestjs/throttler';
import { WebSocketGateway } from '@nestjs/websockets';
import { Keyv } from 'keyv';
import { expect, it } from 'vitest';
import type { FindingName } from '../../../../src/contract/options/index.js';
import { ClusterScheduleModule } from '../../../../src/integrations/schedule/index.js';
import { startWarnings } from '../../../../src/observe/findings/start-warnings.js';
import { appOf } from '../../support/app-findings.js';

@Injectable()
class Reports {
  @Cron('0 3 * * *') nightly() {}
}

@WebSocketGateway()
class Chat {}

const LIMITS = [{ ttl: 1_000, limit: 1 }];
const jobs = [ScheduleModule.forRoot()];

/** An app with everything that is warned of. */
const everything = () =>
  appOf(
    {
      imports: [...jobs, ThrottlerModule.forRoot(LIMITS), CacheModule.register()],
      providers: [Reports, Chat],
    },
    (app) => app.useWebSocketAdapter(new IoAdapter(app)),
  );

const namesOf = (lines: readonly string[]) =>
  lines.map((line) => /ignore: \['([\w-]+)'\]/.exec(line)![1]);

it('warns of each thing once, with the option that silences the line', async () => {
  const lines = startWarnings(await everything(), [], 2);

  expect(namesOf(lines)).toEqual(['scheduled-jobs', 'throttler', 'cache', 'socket-io']);
  expect(lines[0]).toBe(
    "scheduled jobs run in every worker; import ClusterScheduleModule of nestjs-cluster/schedule beside ScheduleModule, which runs each in one worker; warnings: { ignore: ['scheduled-jobs'] } of bootstrap() silences this",
  );
});

it('warns of nothing with one worker, and of nothing that is ignored', async () => {
  const app = await everything();
  const ignored: readonly FindingName[] = ['scheduled-jobs', 'cache', 'socket-io'];

  expect(startWarnings(app, [], 1)).toEqual([]);
  expect(namesOf(startWarnings(app, ignored, 2))).toEqual(['throttler']);
});

const shared = {
  get: async () => undefined,
  set: async () => true,
  delete: async () => true,
  clear: async () => {},
};
const storage = {
  increment: async () => ({
    totalHits: 1,
    timeToExpire: 1,
    isBlocked: false,
    timeToBlockExpire: 0,
  }),
};

it.each([
  [
    'jobs that run in one worker',
    { imports: [...jobs, ClusterScheduleModule], providers: [Reports] },
  ],
  ['a schedule without jobs', { imports: jobs }],
  [
    'a throttler with a storage',
    { imports: [ThrottlerModule.forRoot({ throttlers: LIMITS, storage })] },
  ],
  ['a cache with a store', { imports: [CacheModule.register({ stores: shared as never })] }],
  [
    'a cache in memory in front of a store',
    { imports: [CacheModule.register({ stores: [new Map(), shared] as never })] },
  ],
])('does not warn of %s', async (_, metadata) => {
  expect(startWarnings(await appOf(metadata), [], 2)).toEqual([]);
});

it('warns of a cache whose store is a Map', async () => {
  const imports = [CacheModule.register({ stores: new Keyv({ store: new Map() }) })];

  expect(namesOf(startWarnings(await appOf({ imports }), [], 2))).toEqual(['cache']);
});

it.each([{}, { container: {} }, { socketModule: null }])('warns of no app %j', (app) => {
  expect(startWarnings(app, [], 2)).toEqual([]);
});
