import 'reflect-metadata';
import {
  All,
  Controller,
  Get,
  type INestApplication,
  Module,
  Post,
  type Type,
  VERSION_NEUTRAL,
  VersioningType,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ClusterModule, type ClusterModuleOptions } from 'nestjs-cluster';
import { describe, expect, it, onTestFinished } from 'vitest';
import { NodeAdapter } from '../fixtures/node-adapter.mjs';
import { request } from '../support/http-client.js';

const ADAPTERS = ['express', 'fastify', 'node'] as const;

const createAdapter = { fastify: () => new FastifyAdapter(), node: () => new NodeAdapter() };

interface Options {
  readonly controllers?: readonly Type[];
  readonly options?: ClusterModuleOptions;
  readonly configure?: (app: INestApplication) => void;
}

describe.each(ADAPTERS)('an app on %s', (adapter) => {
  async function create({ controllers = [], options, configure }: Options) {
    @Module({ imports: [ClusterModule.forRoot(options)], controllers: [...controllers] })
    class AppModule {}
    const settings = { logger: false, abortOnError: false } as const;
    const app = await (adapter === 'express'
      ? NestFactory.create(AppModule, settings)
      : NestFactory.create(AppModule, createAdapter[adapter](), settings));
    onTestFinished(() => app.close());
    configure?.(app);
    return app;
  }

  /** @returns what it answers to each path, by GET. */
  async function bodies(given: Options, paths: readonly string[]): Promise<string[]> {
    const app = await create(given);
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    return Promise.all(paths.map(async (path) => (await request(url, path)).body.slice(0, 13)));
  }

  async function refusal(given: Options): Promise<string> {
    const app = await create(given);
    return app.init().then(
      () => 'it started',
      (error: Error) => `${error.name}: ${error.message}`,
    );
  }

  @Controller('health')
  class HealthController {
    @Get() check() {
      return 'mine';
    }
    @Get('ready/') ready() {
      return 'mine';
    }
    @Get('db') database() {
      return 'mine';
    }
    @Post('live') live() {
      return 'mine';
    }
  }

  @Controller()
  class Metrics {
    @All(['numbers', 'metrics']) serve() {
      return 'mine';
    }
  }

  const remedy = (option: string) =>
    `and a path of the ${option} option; change the route or ${option}.path in forRoot(), or set ${option}: false`;

  it('is refused with routes on the paths of /health and /metrics, all in one message', async () => {
    expect(await refusal({ controllers: [HealthController, Metrics] })).toBe(
      'ClusterConfigurationError: routes of the app conflict with endpoints of ClusterModule: ' +
        `/health is both an app route ${remedy('health')} | ` +
        `/health/ready is both an app route ${remedy('health')} | ` +
        `/metrics is both an app route ${remedy('metrics')}`,
    );
  });

  it.each([
    { health: { path: '/state' }, metrics: { path: '/state/metrics' } },
    { health: false, metrics: false },
  ] as const)('serves its own where the options leave it the paths: %j', async (options) => {
    const controllers = [HealthController, Metrics];
    expect(await bodies({ controllers, options }, ['/health', '/metrics'])).toEqual([
      'mine',
      'mine',
    ]);
  });

  it('has both where a prefix or a version in the path tells them apart', async () => {
    @Controller({ path: 'health', version: '1' })
    class Versioned {
      @Get() check() {
        return 'version 1';
      }
    }
    const paths = ['/api/health', '/api/v1/health', '/health', '/metrics'];
    const configure = (app: INestApplication) =>
      app.setGlobalPrefix('api').enableVersioning({ type: VersioningType.URI });
    expect(await bodies({ controllers: [HealthController, Versioned], configure }, paths)).toEqual([
      'mine',
      'version 1',
      '{"status":"ok',
      expect.stringContaining('# HELP'),
    ]);
  });

  it('is refused where the prefix leaves a route out, or a version is none of the path', async () => {
    @Controller({ path: 'metrics', version: VERSION_NEUTRAL })
    class Neutral {
      @Get() check() {
        return 'mine';
      }
    }
    const excluded = (app: INestApplication) => app.setGlobalPrefix('api', { exclude: ['health'] });
    const versioned = (app: INestApplication) => app.enableVersioning({ type: VersioningType.URI });
    expect(await refusal({ controllers: [HealthController], configure: excluded })).toContain(
      'ClusterModule: /health is both an app route',
    );
    expect(await refusal({ controllers: [Neutral], configure: versioned })).toContain(
      'ClusterModule: /metrics is both an app route',
    );
  });

  it('is refused where main.ts has registered such a route on the adapter', async () => {
    const configure = (app: INestApplication) =>
      void app.getHttpAdapter().get('/metrics', () => {});
    expect(await refusal({ configure })).toContain(
      `/metrics is both an app route ${remedy('metrics')}`,
    );
  });
});
