import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { mountInOneLayer } from '../../../../src/observe/endpoints/endpoint-layer.js';
import { mountEndpoint } from '../../../../src/observe/endpoints/mount-endpoint.js';

type Next = () => void;
type Handler = (request: IncomingMessage, response: ServerResponse, next: Next) => void;

interface App {
  (request: IncomingMessage, response: ServerResponse): void;
  readonly router: { readonly stack: { match(path: string): unknown }[] };
  set(name: string, value: unknown): void;
  use(...handlers: Handler[]): void;
  all(path: string, handler: Handler): void;
}

// The one that Nest uses.
const require = createRequire(import.meta.url);
const express = createRequire(require.resolve('@nestjs/platform-express'))('express') as () => App;

const PATHS = ['/health', '/health/live', '/metrics'];

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Each endpoint answers its own path. */
function mount(adapter: AbstractHttpAdapter, paths = PATHS): string[] {
  return mountInOneLayer(adapter, () => {
    for (const path of paths) {
      mountEndpoint(adapter, path, async () => ({
        status: 200,
        contentType: 'text/plain',
        body: `endpoint ${path}`,
      }));
    }
    return [...paths];
  });
}

/** @returns what asks the app, once it has all its routes, and gives status and body. */
async function start(before: (app: App) => void = () => {}, paths = PATHS) {
  const app = express();
  before(app);
  mount(new ExpressAdapter(app), paths);
  app.use((request, response) => response.end(`app ${request.method} ${request.url}`));
  const server = createServer(app);
  closers.push(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { connection: 'close' },
    });
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
}

describe('endpoints on Express', () => {
  it('are one layer of its router, which a request of the app passes by its path alone', async () => {
    const app = express();
    const adapter = new ExpressAdapter(app);
    const { stack } = app.router;
    const before = stack.length;
    expect(mount(adapter)).toEqual(PATHS);
    expect(stack).toHaveLength(before + 1);
    const layer = stack.at(-1)!;
    for (const path of ['/', '/hello', '/healthy', '/metric', '/health/ready/x', '/cats/1']) {
      expect([path, layer.match(path)]).toEqual([path, false]);
    }
  });

  it.each([
    ['/health', '/health'],
    ['/health/live', '/health/live'],
    ['/metrics?x=1', '/metrics'],
    ['/metrics/', '/metrics'],
    ['/HEALTH/Live', '/health/live'],
  ])('answer as routes of Express do: %s', async (url, endpoint) => {
    const ask = await start();
    expect(await ask(url)).toMatchObject({ status: 200, body: `endpoint ${endpoint}` });
    expect(await ask(url, 'HEAD')).toMatchObject({ status: 200, body: '' });
    expect((await ask(url)).headers.get('cache-control')).toBe('no-store');
  });

  it('leave other paths and other methods to the app', async () => {
    const ask = await start();
    for (const path of ['/hello', '/health/other', '/metrics/x', '/healthy']) {
      expect((await ask(path)).body).toBe(`app GET ${path}`);
    }
    for (const method of ['POST', 'OPTIONS', 'DELETE']) {
      expect((await ask('/health', method)).body).toBe(`app ${method} /health`);
    }
  });

  it('compare as the app has set it, and keep the case of their options', async () => {
    const paths = ['/State'];
    const strict = await start((app) => {
      app.set('case sensitive routing', true);
      app.set('strict routing', true);
    }, paths);
    expect((await strict('/State')).body).toBe('endpoint /State');
    expect((await strict('/state')).body).toBe('app GET /state');
    expect((await strict('/State/')).body).toBe('app GET /State/');
    const loose = await start(() => {}, paths);
    expect((await loose('/state/')).body).toBe('endpoint /State');
  });

  it('come after the middleware of main.ts, which may refuse a request or change its path', async () => {
    const ask = await start((app) => {
      app.use((request, response, next) => {
        response.setHeader('X-Frame-Options', 'DENY');
        if (request.url === '/metrics') return void response.writeHead(401).end();
        if (request.url === '/ping') request.url = '/health';
        next();
      });
    });
    expect((await ask('/metrics')).status).toBe(401);
    const { headers, body } = await ask('/ping');
    expect([body, headers.get('x-frame-options')]).toEqual(['endpoint /health', 'DENY']);
  });

  it('show their route to whoever looks at the request after it', async () => {
    let asked: (IncomingMessage & { route?: { path: string } }) | undefined;
    const ask = await start((app) => {
      app.use((request, _response, next) => {
        asked = request;
        next();
      });
    });
    await ask('/health/live');
    expect(asked?.route?.path).toBe('/health/live');
  });

  it('stay as they are where none is mounted, or the router is another', () => {
    const app = express();
    const adapter = new ExpressAdapter(app);
    const before = [...app.router.stack];
    expect(mount(adapter, [])).toEqual([]);
    expect(app.router.stack).toEqual(before);
    const registered: string[] = [];
    const other = {
      getType: () => 'express',
      getInstance: () => ({}),
      get: (path: string) => registered.push(path),
    } as unknown as AbstractHttpAdapter;
    expect(mount(other)).toEqual(PATHS);
    expect(registered).toEqual(PATHS);
  });
});

it('endpoints on Fastify stay routes of its own', async () => {
  const adapter = new FastifyAdapter();
  expect(mount(adapter as unknown as AbstractHttpAdapter)).toEqual(PATHS);
  const { body } = await adapter.inject({ method: 'GET', url: '/health/live' });
  expect(body).toBe('endpoint /health/live');
  await adapter.close();
});
