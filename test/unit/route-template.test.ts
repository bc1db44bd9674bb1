import type { IncomingMessage } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { createRouteTemplateReader } from '../../src/metrics/route-template.js';

describe('the route template on Express', () => {
  const read = createRouteTemplateReader({
    getType: () => 'express',
  } as unknown as AbstractHttpAdapter);
  const request = (fields: object) => ({ url: '/cats/5?a=b', ...fields }) as IncomingMessage;

  it('is that of the route, never the path that was asked for', () => {
    expect(read(request({ route: { path: '/cats/:id' }, baseUrl: '' }))).toBe('/cats/:id');
  });

  it('includes where the router is mounted', () => {
    expect(read(request({ route: { path: '/:id' }, baseUrl: '/cats' }))).toBe('/cats/:id');
  });

  it('is unmatched where no route answered', () => {
    expect(read(request({}))).toBe('unmatched');
    expect(read(request({ baseUrl: '/cats' }))).toBe('unmatched');
  });

  it('is a text also where the route is a pattern', () => {
    expect(read(request({ route: { path: /^\/a+$/ } }))).toBe('/^\\/a+$/');
  });
});

describe('the route template on Fastify', () => {
  type Hook = (request: unknown, reply: unknown, done: () => void) => void;
  interface Route {
    url: string;
    onRequest?: Hook | Hook[];
  }

  function fastify() {
    let onRoute!: (route: Route) => void;
    const read = createRouteTemplateReader({
      getType: () => 'fastify',
      getInstance: () => ({
        addHook: (name: string, hook: typeof onRoute) => {
          expect(name).toBe('onRoute');
          onRoute = hook;
        },
      }),
    } as unknown as AbstractHttpAdapter);
    return {
      read,
      register: (route: Route) => {
        onRoute(route);
        return [route.onRequest ?? []].flat();
      },
    };
  }

  const raw = () => ({ url: '/cats/5' }) as IncomingMessage;

  it('is that of the route that the request was routed to', () => {
    const { read, register } = fastify();
    const [cats] = register({ url: '/cats/:id' });
    const [dogs] = register({ url: '/dogs/:id' });
    const [one, two] = [raw(), raw()];
    cats!({ raw: one }, {}, () => {});
    dogs!({ raw: two }, {}, () => {});
    expect([read(one), read(two)]).toEqual(['/cats/:id', '/dogs/:id']);
  });

  it('lets the request go on', () => {
    const { register } = fastify();
    let done = 0;
    register({ url: '/' })[0]!({ raw: raw() }, {}, () => {
      done += 1;
    });
    expect(done).toBe(1);
  });

  it('is unmatched where no route answered', () => {
    expect(fastify().read(raw())).toBe('unmatched');
  });

  it('is known before the hooks of the route, which stay', () => {
    const { register } = fastify();
    const [first, second]: Hook[] = [() => {}, () => {}];
    expect(register({ url: '/', onRequest: first! }).slice(1)).toEqual([first]);
    expect(register({ url: '/', onRequest: [first!, second!] }).slice(1)).toEqual([first, second]);
    expect(register({ url: '/' })).toHaveLength(1);
  });
});
