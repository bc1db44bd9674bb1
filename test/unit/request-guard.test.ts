import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { QuarantineEntry } from '../../src/ipc/index.js';
import { AppRoutes } from '../../src/worker/quarantine/app-routes.js';
import { RequestGuard } from '../../src/worker/quarantine/request-guard.js';

const servers: http.Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function start() {
  const routes = new AppRoutes();
  routes.add('get', '/items/:id');
  const app = vi.fn((_: http.IncomingMessage, response: http.ServerResponse) =>
    response.end('app'),
  );
  const tell = vi.fn();
  const server = http.createServer(app);
  servers.push(server);
  const guard = new RequestGuard((request) => routes.fingerprint(request), tell);
  guard.follow(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const entry = (url: string | null, trial = false): QuarantineEntry => ({
    id: 1,
    method: 'GET',
    route: '/items/:id',
    url: url === null ? null : routes.fingerprint({ method: 'GET', url }).url,
    trial,
  });
  const ask = async (path: string) => {
    const { status, headers } = await fetch(`${base}${path}`);
    return status === 503 ? `503 after ${headers.get('retry-after')}` : status;
  };
  return { guard, server, app, tell, entry, ask };
}

describe('a request under quarantine', () => {
  it('is answered 503, and the app never sees it; other URLs of its route are answered', async () => {
    const { guard, app, entry, ask } = await start();
    guard.set([entry('/items/7?x=1')]);
    expect(await ask('/items/7?x=1')).toBe('503 after 60');
    expect(app).not.toHaveBeenCalled();
    expect([await ask('/items/7'), await ask('/items/8'), await ask('/hello')]).toEqual([
      200, 200, 200,
    ]);
  });

  it('is each of a route where that is meant', async () => {
    const { guard, entry, ask } = await start();
    guard.set([entry(null)]);
    expect([await ask('/items/7'), await ask('/items/8'), await ask('/items/8/parts')]).toEqual([
      '503 after 60',
      '503 after 60',
      200,
    ]);
  });

  it('is given to the app once where a trial is allowed', async () => {
    const { guard, tell, entry, ask } = await start();
    guard.set([entry('/items/7', true)]);
    expect([await ask('/items/7'), await ask('/items/7')]).toEqual([200, '503 after 60']);
    expect(tell.mock.calls).toEqual([[1, false]]);
  });

  it('leaves the server as it was once there is none', async () => {
    const { guard, server, entry, ask } = await start();
    expect(Object.hasOwn(server, 'emit')).toBe(false);
    guard.set([entry('/items/7')]);
    expect(Object.hasOwn(server, 'emit')).toBe(true);
    guard.set([]);
    expect(Object.hasOwn(server, 'emit')).toBe(false);
    expect(await ask('/items/7')).toBe(200);
  });
});

describe('the route of a path', () => {
  it.each([
    ['GET', '/cats/7', '/cats/:id'],
    ['GET', '/cats/best', '/cats/best'],
    ['POST', '/cats/7', null],
    ['GET', '/cats', null],
    ['DELETE', '/any/7', '/any/:id'],
    ['GET', '/files/a/b/c', '/files/*path'],
  ])('%s %s is %s', (method, path, template) => {
    const routes = new AppRoutes();
    routes.add('get', '/cats/:id');
    routes.add('get', '/cats/best');
    routes.add('all', '/any/:id');
    routes.add('get', '/files/*path');
    expect(routes.find(method, path)).toBe(template);
  });

  it('is learned from what Nest registers at its adapter, which is left as it was', () => {
    const routes = new AppRoutes();
    const adapter = { get: vi.fn() };
    const { get } = adapter;
    const end = routes.follow(adapter);
    adapter.get('/cats/:id', () => {});
    end();
    expect(get).toHaveBeenCalledOnce();
    expect(adapter.get).toBe(get);
    expect(routes.find('GET', '/cats/7')).toBe('/cats/:id');
  });
});
