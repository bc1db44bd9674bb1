import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { fastify, type FastifyInstance } from 'fastify';
import { describe, expect, it } from 'vitest';
import { createRouteTemplateReader } from '../../src/metrics/route-template.js';

type Handler = (...args: any[]) => void; // oxlint-disable-line typescript/no-explicit-any

interface Layer {
  readonly handle: { readonly stack?: Layer[] };
  readonly name: string;
  rawPath?: unknown;
}

interface Router {
  readonly stack: Layer[];
  use(...args: unknown[]): this;
  get(path: unknown, ...handlers: Handler[]): this;
  all(path: unknown, ...handlers: Handler[]): this;
}

interface App extends Router {
  readonly router: Router;
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
    // What the handler does after its answer comes before Node tells of it.
    await turn();
    return read(request);
  };
}

/** As of router 2.2, whose layers do not tell their paths. */
function forgetPaths(stack: Layer[]): void {
  for (const layer of stack) {
    delete layer.rawPath;
    if (layer.handle.stack) forgetPaths(layer.handle.stack);
  }
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

  it('is that of the route that a rewritten URL led to', async () => {
    const app = express()
      .use((request: IncomingMessage, _response: unknown, next: () => void) => {
        request.url = request.url!.replace(/^\/old/, '/new/1');
        next();
      })
      .use('/new/:id', express.Router().get('/cats', answer));

    expect(await client(app as App)('/old/cats')).toBe('/new/:id/cats');
  });

  it('is that of the way that a rewritten URL took, where there are several', async () => {
    const router = express.Router().get('/cats', answer);
    const app = express()
      .use((request: IncomingMessage, _response: unknown, next: () => void) => {
        request.url = request.url!.replace(/^\/old/, '/two/1');
        next();
      })
      .use('/one/:id', router)
      .use('/two/:id', router);

    expect(await client(app as App)('/old/cats')).toBe('/two/:id/cats');
  });

  it('knows routes that are registered after the first request', async () => {
    const app = express().get('/a', answer) as App;
    const ask = client(app);
    expect(await ask('/a')).toBe('/a');

    app.use('/b/:id', express.Router().get('/c', answer));
    expect(await ask('/b/5/c')).toBe('/b/:id/c');

    const routers = express.Router();
    app.use('/many/:id', routers);
    for (let i = 0; i < 1_100; i++) {
      routers.get(`/${i}`, answer);
      expect(await ask(`/many/5/${i}`)).toBe(`/many/:id/${i}`);
    }
  }, 30_000); // each request passes all the routes before its own

  it('is not what else somebody has put in its place', async () => {
    const ask = client(express().use(answer) as App);

    for (const route of [null, 'a', 1, {}, { path: '/5' }, { path: '/5', stack: 'x' }]) {
      expect(await ask('/5', 'GET', { route })).toBe('unmatched');
    }
  });

  it('is unmatched in what Nest 12 makes of a global prefix to answer 404', async () => {
    const app = express()
      .use('/api/:tenant', express.Router().get('/cats', answer))
      .use('/api/:tenant', express.Router().all('*path', fail))
      .use(answerError);
    const ask = client(app as App);

    expect(await ask('/api/5/cats')).toBe('/api/:tenant/cats');
    expect(await ask('/api/5/dogs')).toBe('unmatched');
  });
});

describe.each([{ tells: true }, { tells: false }])(
  'the template of a route in routers on Express, whose layers tell their paths: $tells',
  ({ tells }) => {
    const ready = (app: Router) => {
      if (!tells) forgetPaths((app as App).router.stack);
      return client(app as App);
    };
    const routes = () =>
      express
        .Router()
        .get('/', answer)
        .get('/cats/:cat', answer)
        .get('/fails/:cat', fail)
        .get('/answers-and-goes-on', (...args) => {
          answer(...args);
          args[2]();
        });

    it.each([
      { mount: '/api', at: '/api', template: '/api' },
      { mount: '/tenants/:id', at: '/tenants/5', template: '/tenants/:id' },
      { mount: '/tenants/:id/', at: '/tenants/5', template: '/tenants/:id' },
      { mount: '/tenants/:id', at: '/tenants/tenants', template: '/tenants/:id' },
      { mount: '/tenants/:id', at: '/TENANTS/a%20b%2Fc', template: '/tenants/:id' },
      { mount: '/:a/of/:b', at: '/of/of/of', template: '/:a/of/:b' },
      { mount: '/', at: '', template: '' },
    ])('has the template of the prefix $mount', async ({ mount, at, template }) => {
      const ask = ready(express().use(mount, routes()).use(answer).use(answerError));

      expect(await ask(`${at}/cats/7`)).toBe(`${template}/cats/:cat`);
      expect(await ask(`${at}/fails/7`)).toBe(`${template}/fails/:cat`);
      expect(await ask(`${at}/answers-and-goes-on`)).toBe(`${template}/answers-and-goes-on`);
      expect(await ask(at || '/')).toBe(template || '/');
      expect(await ask(`${at}/dogs`)).toBe('unmatched');
    });

    it('has the templates of all prefixes of routers in routers', async () => {
      const inner = express.Router().use('/houses/:house', routes());
      const ask = ready(
        express().use('/tenants/:id', express.Router().use(inner)).use(answerError),
      );

      for (const id of [1, 2, 3]) {
        const path = `/tenants/${id}/houses/${id}`;
        expect(await ask(`${path}/cats/7`)).toBe('/tenants/:id/houses/:house/cats/:cat');
        expect(await ask(`${path}/fails/7`)).toBe('/tenants/:id/houses/:house/fails/:cat');
      }
    });

    it('has the template of the one prefix of several that the request came by', async () => {
      const router = routes();
      const app = express()
        .use('/a', router)
        .use('/b/:id', router)
        .use(['/c', '/d/:id'], router)
        .use('/e', router)
        .use('/e/:id', router)
        .use(/^\/f\/\d/, router)
        .use('/f/:id', router);
      const ask = ready(app.use(answerError));

      for (const [path, template] of [
        ['/a', '/a'],
        ['/b/5', '/b/:id'],
        ['/c', '/c'],
        ['/d/5', '/d/:id'],
        ['http://host/d/5', '/d/:id'],
        ['/e', '/e'],
        ['/e/5', '/e/:id'],
        ['/f/55', '/f/:id'],
      ]) {
        expect(await ask(`${path}/cats/7`)).toBe(`${template}/cats/:cat`);
        expect(await ask(`${path}/fails/7?a=/b`)).toBe(`${template}/fails/:cat`);
      }
    });

    it('is bounded where the prefix is a pattern, a part of a segment, or a wildcard', async () => {
      const ask = ready(
        express()
          .use(/^\/re\/\d+/, routes())
          .use('/v:version', routes())
          .use('/w/*rest/in', routes())
          .use(answerError),
      );
      const templates = async (...prefixes: string[]) => {
        const all = prefixes.map((prefix) => [`${prefix}/cats/7`, `${prefix}/fails/7`]).flat();
        const found = new Set<string>();
        for (const path of all) found.add((await ask(path)).replace(/\/(cats|fails)\/:cat$/, ''));
        return [...found];
      };

      expect(await templates('/re/1', '/re/2')).toEqual([tells ? '/^\\/re\\/\\d+' : '/*']);
      expect(await templates('/v1', '/v2')).toEqual([tells ? '/v:version' : '/*']);
      expect(await templates('/w/1/2/3/in', '/w/1/in')).toEqual(['/w/*rest/in']);
    });

    it('has that of a sub-app, also where an error has left it', async () => {
      const app = express().get('/own', answer);
      for (const mount of ['/apps/:id', '/others/:id']) {
        const inner = express().use('/inner/:inner', routes());
        const sub = express().get('/cats/:cat', answer).get('/fails/:cat', fail);
        app.use(mount, sub.use('/routers/:router', routes()).use('/deep', inner));
      }
      app.use(answerError);
      const ask = ready(app);

      for (const id of [1, 2, 3]) {
        for (const name of ['apps', 'others']) {
          const at = (path: string) => ask(`/${name}/${id}${path}`);
          expect(await at('/cats/7')).toBe(`/${name}/:id/cats/:cat`);
          expect(await at('/fails/7')).toBe(`/${name}/:id/fails/:cat`);
          expect(await at('/routers/8/cats/7')).toBe(`/${name}/:id/routers/:router/cats/:cat`);
          expect(await at('/deep/inner/9/cats/7')).toBe(`/${name}/:id/deep/inner/:inner/cats/:cat`);
        }
        expect(await ask('/own')).toBe('/own');
      }
    });

    it('has that of a sub-app that is mounted at no path', async () => {
      const app = express().use('/cats', express()).use(express().get('/cats/:cat', answer));

      expect(await ready(app)('/cats/7')).toBe('/cats/:cat');
    });

    it('has that of an app that is used as a router', async () => {
      const router = express.Router().use('/apps/:id', express().get('/cats/:cat', answer));
      const ask = ready(express().use(router));

      expect(await ask('/apps/5/cats/7')).toBe('/apps/:id/cats/:cat');
    });

    it('is bounded where functions of the app hide its routers', async () => {
      const inner = express.Router().use('/inner/:id', routes());
      const hide =
        (router: Router): Handler =>
        (...args) =>
          (router as unknown as Handler)(...args);
      const everywhere: Handler = (_request, _response, next) => next();
      const ask = ready(
        express()
          .use('/*path', everywhere)
          .use('/:any/:id', everywhere)
          .use('/tenants/:id', hide(routes()))
          .use('/deep/:id', hide(inner))
          .use(hide(express.Router().get('/plain/:id', answer)))
          .use('/*path', express.Router().use(everywhere))
          .use(/^\/deep\/\d/, everywhere)
          .use(answerError),
      );

      for (const id of [11, 22, 33]) {
        expect(await ask(`/tenants/${id}/cats/7`)).toBe('/tenants/:id/cats/:cat');
        expect(await ask(`/deep/${id}/inner/${id}/cats/7`)).toBe('/deep/:id/*/cats/:cat');
        expect(await ask(`/plain/${id}`)).toBe('/plain/:id');
        expect(await ask(`/tenants/${id}/fails/7`)).toBe('/fails/:cat');
      }
    });
  },
);

describe('the route template on Express, whatever the app does', () => {
  it('is bounded where a router is mounted in itself', async () => {
    const router = express.Router().get('/cats/:id', answer);
    router.use('/again/:n', router);
    const ask = client(express().use('/a/:id', router) as App);

    const found = new Set<string>();
    for (let depth = 0; depth < 30; depth++) {
      found.add(await ask(`/a/${depth}${`/again/${depth}`.repeat(depth)}/cats/5`));
    }

    expect([...found]).toEqual(['/a/:id/cats/:id']);
  });

  it('is bounded where each request has a router of its own', async () => {
    const app = express().use('/own/:id', (request: { url: string }, ...args: unknown[]) => {
      const router = express.Router().get(request.url, answer) as unknown as Handler;
      router(request, ...args);
    });
    const ask = client(app as App);

    const found = new Set<string>();
    for (let i = 0; i < 3_000; i++) found.add(await ask(`/own/${i}/path/${i}`));

    expect(found.size).toBeLessThanOrEqual(1_001);
    expect(await ask('/own/a/path/b')).toBe('*');
  });

  it('never throws, whatever a router may be like', () => {
    const route = () => ({ path: '/cats', stack: [] });
    const layer = { name: 'a', handle: {}, slash: false, matchers: [() => fail()] };
    for (const instance of [
      undefined,
      null,
      {},
      { router: null },
      { router: { stack: 'no' } },
      { router: { stack: [null] } },
      { router: { stack: [{}] } },
      { router: { stack: [layer] } },
      {
        get router() {
          throw new Error('as Express 4 has it');
        },
      },
    ]) {
      const read = createRouteTemplateReader(adapterOf('express', instance));
      for (const fields of [{}, { baseUrl: '/a/5' }, { originalUrl: '/%zz' }, { app: {} }]) {
        const request = { route: route(), ...fields } as unknown as IncomingMessage;
        expect(['/cats', '/*/cats', '*']).toContain(read(request));
        expect(['/cats', '/*/cats', '*']).toContain(read(request));
      }
    }
  });
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
