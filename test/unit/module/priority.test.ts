import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { describe, expect, it } from 'vitest';
import { ClusterConfigurationError } from '../../../src/contract/errors/index.js';
import { Priority } from '../../../src/module/priority.decorator.js';
import { AppRoutes } from '../../../src/worker/quarantine/app-routes.js';

@Controller('mixed')
class Mixed {
  @Priority('critical')
  @Get('vital/:id')
  vital() {}

  @Get('vital/plain')
  plain() {}

  @Get('normal')
  normal() {}
}

@Priority('sheddable')
@Controller('batch')
class Batch {
  @Get()
  all() {}

  @Get('important')
  @Priority('critical')
  important() {}

  get notAMethod(): never {
    throw new Error('a getter was read');
  }
}

@Module({ controllers: [Mixed, Batch] })
class AppModule {}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('@Priority() with %s', (_, createAdapter) => {
  it('holds for the routes of its handler or controller, with their prefixes', async () => {
    const app = await NestFactory.create(AppModule, createAdapter(), { logger: false });
    const routes = new AppRoutes();
    routes.follow(app.getHttpAdapter());
    app.setGlobalPrefix('api');
    await app.init();
    const priorities = (method: string, ...paths: string[]) =>
      paths.map((path) => routes.priority(method, path));
    expect(priorities('GET', '/api/mixed/vital/7', '/api/batch', '/api/batch/important')).toEqual([
      'critical',
      'sheddable',
      'critical',
    ]);
    expect(priorities('HEAD', '/api/mixed/vital/7')).toEqual(['critical']);
    const others = ['/api/mixed/normal', '/api/mixed/vital/plain', '/mixed/vital/7', '/unknown'];
    expect(priorities('GET', ...others)).toEqual(others.map(() => 'normal'));
    expect(priorities('POST', '/api/mixed/vital/7')).toEqual(['normal']);
    await app.close();
  });
});

it('@Priority() refuses a priority that does not exist', () => {
  expect(() => Priority('high' as never)).toThrow(ClusterConfigurationError);
  expect(() => Priority('high' as never)).toThrow(
    `@Priority("high") is not allowed; expected one of 'critical', 'normal', 'sheddable'`,
  );
});
