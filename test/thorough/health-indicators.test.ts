import 'reflect-metadata';
import { type INestApplication, Injectable, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClusterModule } from 'nestjs-cluster';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { getJson } from '../support/http-client.js';

const SECRET = 'postgres://user:password@db.internal';

const UP = { status: 'up', rows: 3 } as const;

/** The behaviour of each indicator. */
const states = { database: '', cache: '' };

async function behave(name: keyof typeof states) {
  if (states[name] === 'throws') throw new Error(`no answer from ${SECRET}`);
  if (states[name] === 'hangs') await new Promise(() => {});
  return { [name]: UP };
}

@Injectable()
class Database {
  readonly name = 'database';
}

/** Only the instance that Nest made knows what it asks. */
@Injectable()
class DatabaseHealthIndicator {
  constructor(private readonly database: Database) {}

  check() {
    return behave(this.database.name);
  }
}

function cacheHealthIndicator() {
  return behave('cache');
}

@Module({
  imports: [
    ClusterModule.forRoot({
      health: { indicators: [DatabaseHealthIndicator, cacheHealthIndicator] },
    }),
  ],
  providers: [Database, DatabaseHealthIndicator],
})
class AppModule {}

describe('indicators of the app', () => {
  let app: INestApplication;
  let url: string;
  const logged = vi.fn<(line: string) => void>();

  beforeEach(async () => {
    Object.assign(states, { database: 'up', cache: 'up' });
    vi.spyOn(Logger.prototype, 'error').mockImplementation(logged);
    app = await NestFactory.create(AppModule, { logger: false });
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
    onTestFinished(async () => {
      await app.close();
      vi.restoreAllMocks();
    });
  });

  it('are in /health alone, each as it is, whatever the others do', async () => {
    const well = await getJson(url, '/health');
    expect(well).toMatchObject({ status: 200, body: { status: 'ok', error: {} } });
    expect(well.body.details).toMatchObject({ database: UP, cache: UP });
    const names = ['cluster', 'eventLoop', 'memory', 'offload', 'database', 'cache'];
    expect(Object.keys(well.body.details)).toEqual(names);

    // Nothing of an error is told, and the log has it once.
    states.database = 'throws';
    const threw = { status: 'down', message: 'threw an error; see the log' };
    for (let i = 0; i < 3; i++) {
      const { status, body } = await getJson(url, '/health');
      expect([status, body.error]).toEqual([503, { database: threw }]);
      expect(body.info).toMatchObject({ cluster: { status: 'up' }, cache: UP });
    }
    expect(logged.mock.calls.filter(([line]) => line.includes(SECRET))).toHaveLength(1);
    for (const [path, details] of [
      ['/health/live', []],
      ['/health/ready', ['cluster']],
    ] as const) {
      const { status, body } = await getJson(url, path);
      expect([path, status, Object.keys(body.details)]).toEqual([path, 200, details]);
    }

    states.cache = 'hangs';
    expect((await getJson(url, '/health')).body.error).toEqual({
      database: threw,
      cache: { status: 'down', message: 'did not finish within 1000 ms; see the log' },
    });
  });
});
