import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { fastify, type FastifyInstance } from 'fastify';
import { describe, expect, it } from 'vitest';
import { createRouteTemplateReader } from '../../../../src/observe/metrics/route-template.js';

type Handler = (...args: any[]) => void; // oxlint-disable-line typescript/no-explicit-any

interface Router {
  use(...args: unknown[]): this;
  get(path: unknown, ...handlers: Handler[]): this;
  all(path: unknown, ...handlers: Handler[]): this;
}

interface App extends Router {
  handle(request: IncomingMessage, response: ServerResponse): void;
}

interface Express {
  (): App;
  Router(options?: object): Router;
}

// The one that Nest uses.
const require = createRequire(import.meta.url);
const express = createRequire(require.resolve('@nestjs/platform-express'))('express') as Express;

const answer: Handler = (_request, response: ServerResponse) => response.end();
const fail: Handler = () => {
  throw new Error('not handled');
};
const answerError: Handler = (_error, _request, response: ServerResponse, _next) => response.end();

const adapterOf = (type: string, instance: unknown) =>
  ({ getType: () => type, getInstance: () => instance }) as unknown as AbstractHttpAdapter;

/** Sends requests through the app with no socket; gives the template of each. */
function client(app: App) {
  const read = createRouteTemplateReader(adapterOf('express', app));
  return async (url: string, method = 'GET', fields: object = {}): Promise<string> => {
    const request = Object.assign(new IncomingMessage(new Socket()), { url, method }, fields);
    const response = new ServerResponse(request);
    const end = response.end.bind(response);
    response.end = ((...args: []) => {
      response.emit('answered');
      return end(...args);
    }) as typeof response.end;
    const answered = once(response, 'answered');
    app.handle(request, response);
    await answered;
    // Node reports the end of a response only after the rest of the handler has run.
    await turn();
    return read(request);
  };
}

describe('the route template on Express', () => {
  it('is that of the route, never the path that was asked for', async () => {
    const app = express().get('/cats/:id', answer).get('/files/*path', answer);
    const ask = client(app as App);

    expect(await ask('/cats/5?a=b')).toBe('/cats/:id');
    expect(await ask('/CATS/6/', 'HEAD')).toBe('/cats/:id');
    expect(await ask('/files/a/b/c')).toBe('/files/*path');
  });

  it('is a text also where the route is a pattern, or several', async () => {
    const app = express()
      .get(/^\/a+$/, answer)
      .get(['/b', '/c/:id'], answer);
    const ask = client(app as App);

    expect(await ask('/aaa')).toBe('/^\\/a+$/');
    expect([await ask('/b'), await ask('/c/5')]).toEqual(['/b,/c/:id', '/b,/c/:id']);
  });

  it('is unmatched where no route answered', async () => {
    const app = express().use('/static', answer).get('/cats', answer).use(answer).use(answerError);
    const ask = client(app as App);

    expect(await ask('/nothing/here')).toBe('unmatched');
    expect(await ask('/static/a.css')).toBe('unmatched');
    expect(await ask('/cats', 'POST')).toBe('unmatched');
    expect(await ask('/cats/%zz')).toBe('unmatched');
    expect(await ask('*')).toBe('unmatched');
  });

  it('is that of the last route that matched', async () => {
    const next: Handler = (_request, _response, next: (to?: string) => void) => next('route');
    const router = express.Router().get('/:id', (_request, _response, leave) => leave('router'));
    const app = express()
      .get('/cats/*rest', next)
      .use('/cats', router)
      .get('/cats/:cat', answer)
      .use(answer);
    const ask = client(app as App);

    expect(await ask('/cats/5')).toBe('/cats/:cat');
    expect(await ask('/cats/5/6')).toBe('/cats/*rest');
  });

  it('knows routes that are registered after the first request', async () => {
    const app = express().get('/a', answer) as App;
    const ask = client(app);
    expect(await ask('/a')).toBe('/a');

    app.get('/b/:id', answer);
    expect(await ask('/b/5')).toBe('/b/:id');
  });

  it('is not what else somebody has put in its place', async () => {
    const ask = client(express().use(answer) as App);

    for (const route of [null, 'a', 1, {}, { path: '/5' }, { path: '/5', stack: 'x' }]) {
      expect(await ask('/5', 'GET', { route })).toBe('unmatched');
    }
  });

  it('is unmatched in what Nest 12 makes of a global prefix to answer 404', async () => {
    const app = express()
      .get('/api/:tenant/cats', answer)
      .use('/api/:tenant', express.Router().all('*path', fail))
      .use(answerError);
    const ask = client(app as App);

    expect(await ask('/api/5/cats')).toBe('/api/:tenant/cats');
    expect(await ask('/api/5/dogs')).toBe('unmatched');
  });

  it('is one for all routes of routers and sub-apps under a path, however they end', async () => {
    const routes = () => express.Router().get('/', answer).get('/cats/:id', answer);
    const failing = () => routes().get('/fails/:id', fail);
    const hidden = failing() as unknown as Handler;
    const app = express()
      .get('/own/cats/:id', answer)
      .use('/own', failing())
      .use('/tenants/:id', failing().use('/houses/:id', failing()))
      .use('/apps/:id', express().get('/cats/:id', answer).use('/deep', failing()))
      .use('/hidden/:id', (...args: unknown[]) => hidden(...args))
      .use(express.Router().get('/plain/:id', answer).get('/fails/:id', fail))
      .use(answer)
      .use(answerError);
    const ask = client(app as App);

    for (const path of [
      '/own',
      '/own/fails/1',
      '/tenants/1/cats/2',
      '/tenants/1/fails/2',
      '/tenants/1/houses/2/fails/3',
      '/apps/1/cats/2',
      '/apps/1/deep/cats/2',
      '/apps/1/deep/fails/2',
      '/hidden/1/cats/2',
      '/hidden/1/fails/2',
    ]) {
      expect([path, await ask(path)]).toEqual([path, '*']);
    }
    expect(await ask('/own/cats/1')).toBe('/own/cats/:id');
    expect(await ask('/plain/1')).toBe('/plain/:id');
    expect(await ask('/fails/1')).toBe('/fails/:id');
    expect(await ask('/tenants/1/dogs/2')).toBe('unmatched');
  });

  it('is bounded where each request has a router of its own', async () => {
    const app = express().use('/own/:id', (request: { url: string }, ...args: unknown[]) => {
      const router = express.Router().get(request.url, answer) as unknown as Handler;
      router(request, ...args);
    });
    const ask = client(app as App);

    for (let i = 0; i < 5; i++) expect(await ask(`/own/${i}/path/${i}`)).toBe('*');
  });

  it.each([{}, { router: null }, { router: {} }])(
    'is the one of routers where the app shows no routes of its own: %j',
    (instance) => {
      const read = createRouteTemplateReader(adapterOf('express', instance));
      const route = { path: '/cats', stack: [] };
      expect(read({ route } as unknown as IncomingMessage)).toBe('*');
    },
  );
});

describe('the route template on Fastify', () => {
  function reader(app: FastifyInstance) {
    const read = createRouteTemplateReader(adapterOf('fastify', app));
    let last: IncomingMessage | undefined;
    app.addHook('onResponse', async ({ raw }) => {
      last = raw;
    });
    const noContent = async () => '';
    return {
      noContent,
      ask: async (
        url: string,
        options: { method?: 'GET' | 'POST' | 'HEAD'; payload?: string; headers?: object } = {},
      ): Promise<string> => {
        last = undefined;
        await app.inject({ url, ...options } as object);
        return last === undefined ? 'unmatched' : read(last);
      },
    };
  }

  it('is that of the route that the request was routed to', async () => {
    const app = fastify();
    const { ask, noContent } = reader(app);
    app.get('/cats/:id', noContent);
    app.get('/files/*', noContent);
    app.get('/at/:hour(^\\d+)h', noContent);

    expect(await ask('/cats/5?a=b')).toBe('/cats/:id');
    expect(await ask('/cats/6', { method: 'HEAD' })).toBe('/cats/:id');
    expect(await ask('/files/a/b/c')).toBe('/files/*');
    expect(await ask('/at/5h')).toBe('/at/:hour(^\\d+)h');
  });

  it('has the prefixes of the plugins around the route', async () => {
    const app = fastify();
    const { ask, noContent } = reader(app);
    await app.register(
      async (tenants) => {
        tenants.get('/', noContent);
        await tenants.register(
          async (houses) => {
            houses.get('/cats/:cat', noContent);
            houses.setNotFoundHandler(noContent);
          },
          { prefix: '/houses/:house' },
        );
      },
      { prefix: '/tenants/:id' },
    );

    for (const id of [1, 2, 3]) {
      expect(await ask(`/tenants/${id}`)).toBe('/tenants/:id');
      expect(await ask(`/tenants/${id}/`)).toBe('/tenants/:id');
      expect(await ask(`/tenants/${id}/houses/4/cats/5`)).toBe(
        '/tenants/:id/houses/:house/cats/:cat',
      );
      expect(await ask(`/tenants/${id}/houses/4/dogs/5`)).toBe('unmatched');
    }
  });

  it('is one for all constraints of a path', async () => {
    const app = fastify();
    const { ask, noContent } = reader(app);
    for (const host of ['a.test', /^b\d+\.test$/]) {
      app.get('/cats/:id', { constraints: { host } }, noContent);
    }

    expect(await ask('/cats/1', { headers: { host: 'a.test' } })).toBe('/cats/:id');
    expect(await ask('/cats/1', { headers: { host: 'b7.test' } })).toBe('/cats/:id');
    expect(await ask('/cats/1', { headers: { host: 'c.test' } })).toBe('unmatched');
  });

  it('is there for requests that were refused before the handler', async () => {
    const app = fastify({ bodyLimit: 10 });
    const { ask, noContent } = reader(app);
    app.addHook('onRequest', async ({ headers }) => {
      if (headers['x-refuse']) throw new Error('refused');
    });
    app.post('/cats/:id', noContent);
    app.get('/fails/:id', async () => fail());
    const method = 'POST';

    expect(await ask('/cats/1', { method, headers: { 'x-refuse': '1' } })).toBe('/cats/:id');
    expect(await ask('/cats/1', { method, payload: '{"a":', headers: json })).toBe('/cats/:id');
    expect(await ask('/cats/1', { method, payload: '"0123456789"', headers: json })).toBe(
      '/cats/:id',
    );
    expect(await ask('/fails/1')).toBe('/fails/:id');
    expect(await ask('/dogs/1', { headers: { 'x-refuse': '1' } })).toBe('unmatched');
  });

  it('is unmatched where no route answered', async () => {
    const app = fastify();
    const { ask, noContent } = reader(app);
    app.get('/cats/:id', noContent);

    expect(await ask('/nothing/here')).toBe('unmatched');
    expect(await ask('/cats/1', { method: 'POST' })).toBe('unmatched');
    expect(await ask('/cats/%zz')).toBe('unmatched');
    expect(await ask(`/cats/${'a'.repeat(10_000)}`)).toBe('unmatched');
  });

  it('leaves the hooks of the route, and is known before them', async () => {
    const app = fastify();
    const read = createRouteTemplateReader(adapterOf('fastify', app));
    const seen: string[] = [];
    const hook = (name: string) => async (request: { raw: IncomingMessage }) => {
      seen.push(`${name} ${read(request.raw)}`);
    };
    app.get('/a', { onRequest: hook('one'), onError: hook('error') }, async () => fail());
    app.get('/b', { onRequest: [hook('one'), hook('two')] }, async () => '');

    await app.inject('/a');
    await app.inject('/b');

    expect(seen).toEqual(['one /a', 'error /a', 'one /b', 'two /b']);
  });

  const json = { 'content-type': 'application/json' };
});
