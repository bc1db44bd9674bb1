import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Module, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { NO_ROUTE } from '../../../../src/contract/ipc/index.js';
import { AppRoutes } from '../../../../src/worker/quarantine/app-routes.js';
import {
  describeRequest,
  type RequestLine,
} from '../../../../src/worker/quarantine/describe-request.js';

function start() {
  const routes = new AppRoutes();
  routes.add('get', '/cats/:id');
  routes.add('get', '/cats/best');
  routes.add('get', '/cats/:id/toys');
  routes.add('all', '/any/:id');
  routes.add('get', '/files/*path');
  routes.add('get', '/caf%C3%A9');
  routes.add('head', '/own');
  routes.add('get', '/own');
  return (method: string, url: string) => routes.fingerprint({ method, url })!;
}

const LONG = 'x'.repeat(300);

describe('the route of a request', () => {
  it.each([
    ['GET', '/cats/7', '/cats/:id'],
    ['GET', '/cats/best', '/cats/best'],
    ['DELETE', '/any/7', '/any/:id'],
    ['GET', '/files/a/b/c', '/files/*path'],
    ['HEAD', '/cats/7', '/cats/:id'],
    ['GET', 'http://h1:80/cats/7?n=1', '/cats/:id'],
    ['GET', 'other+1://user@[::1]/cats/best', '/cats/best'],
    ['GET', '/cats/best#7', '/cats/best'],
    ['GET', '/c%61ts/b%65st', '/cats/best'],
    ['GET', '/cats/a%2Fb', '/cats/:id'],
    ['GET', '/cats/%zz%', '/cats/:id'],
    ['GET', '/caf%c3%A9', '/café'],
  ])('%s %s is %s', (method, url, template) => {
    expect(start()(method, url).route).toBe(template);
  });

  it.each([
    ['POST', '/cats/7'],
    ['GET', '/cats'],
    ['GET', '/cats/7/best/'],
    ['HEAD', '/any'],
    ['GET', '/%zz'],
  ])('%s %s has no template', (method, url) => {
    expect(start()(method, url).route).not.toMatch(/^\//);
  });

  it('is that of the whole path, however long', () => {
    expect(start()('GET', `/cats/${LONG}/toys`).route).toBe('/cats/:id/toys');
  });

  it('is learned from what Nest registers at its adapter', () => {
    const routes = new AppRoutes();
    const adapter = { get: vi.fn() };
    const { get } = adapter;
    routes.follow(adapter);
    adapter.get('/cats/:id', () => {});
    expect(get).toHaveBeenCalledOnce();
    expect(routes.fingerprint({ method: 'GET', url: '/cats/7' })?.route).toBe('/cats/:id');
  });
});

describe('the fingerprint of a request', () => {
  it('has the method GET for HEAD, if HEAD has no route of its own', () => {
    const fingerprint = start();
    expect(fingerprint('HEAD', '/cats/7')).toEqual(fingerprint('GET', '/cats/7'));
    expect(fingerprint('HEAD', '/none')).toEqual(fingerprint('GET', '/none'));
    expect(fingerprint('HEAD', '/own').method).toBe('HEAD');
    expect(fingerprint('POST', '/any/7').method).toBe('POST');
  });

  it('is the same in absolute form, whatever the host is', () => {
    const fingerprint = start();
    for (const host of ['h1', 'h2:80'])
      expect(fingerprint('GET', `http://${host}/cats/7?n=1`)).toEqual(
        fingerprint('GET', '/cats/7?n=1'),
      );
  });

  it('is that of the path, not of the query, if no route matches', () => {
    const fingerprint = start();
    expect(fingerprint('GET', '/graphql').route).toBe(NO_ROUTE);
    const hashOf = (url: string) => fingerprint('GET', url).url;
    const own = hashOf('/graphql?query=1');
    for (const url of ['/graphql?query=2', 'http://h2/graphql', '/GraphQL/#3', '/graph%71l'])
      expect(hashOf(url)).toBe(own);
    expect(hashOf('/graph/ql')).not.toBe(hashOf('/graph%2Fql'));
    for (const url of ['/graphiql', '/graphql/7', '/graph/ql', '/'])
      expect(hashOf(url)).not.toBe(own);
    expect(hashOf(`/${LONG}`)).toHaveLength(16);
  });
});

it('the description of a request has the path alone, shortened', () => {
  const pathOf = (url: string) => describeRequest({ method: 'GET', url }).path;
  expect(pathOf('http://h/health?token=1')).toBe('/health');
  expect(pathOf('http://h?next=/health/')).toBe('');
  expect(pathOf('/health#/secret')).toBe('/health');
  expect(pathOf('//h/health')).toBe('//h/health');
  expect(pathOf('/see/http://h/health')).toBe('/see/http://h/health');
  expect(pathOf('*')).toBe('*');
  expect(pathOf('')).toBe('');
  expect(pathOf(`/${LONG}`)).toHaveLength(200);
});

const answered: (RequestLine & { raw?: RequestLine })[] = [];

@Controller()
class Fatal {
  @Get('faults/crash')
  crash(@Req() request: RequestLine & { raw?: RequestLine }) {
    answered.push(request.raw ?? request);
    return '';
  }
}

@Module({ controllers: [Fatal] })
class AppModule {}

/** Request lines that a client may vary, and that one of the routers takes to the same handler. */
const VARIANTS = [
  ['GET', '/faults/crash?n=1'],
  ['HEAD', '/faults/crash?n=1'],
  ['GET', 'http://h1/faults/crash?n=1'],
  ['HEAD', 'HTTPS://user@h2:80/faults/crash'],
  ['GET', 'other://h3/faults/crash'],
  ['GET', '/faults/crash#n'],
  ['GET', 'http://h4/faults/crash#n?n'],
  ['GET', '/f%61ults/cr%61sh'],
  ['GET', '/FAULTS/crash/'],
] as const;

it.each([
  ['Express', () => new ExpressAdapter(), 8],
  ['Fastify', () => new FastifyAdapter(), 6],
])('each request that %s takes to a handler has its route', async (_, createAdapter, most) => {
  const app = await NestFactory.create(AppModule, createAdapter(), { logger: false });
  onTestFinished(() => app.close());
  const routes = new AppRoutes();
  routes.follow(app.getHttpAdapter());
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as http.Server).address() as AddressInfo;
  answered.length = 0;
  for (const [method, path] of VARIANTS) {
    const request = http.request({ host: '127.0.0.1', port, method, path, agent: false }).end();
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    response.resume();
  }
  expect(answered).toHaveLength(most);
  for (const each of answered)
    expect(routes.fingerprint(each)).toMatchObject({ method: 'GET', route: '/faults/crash' });
});
