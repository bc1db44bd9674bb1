import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import net, { type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type LimitOptions, resolveOptions } from '../../../../src/contract/options/index.js';
import { LocalLink } from '../../../../src/worker/link/local-link.js';

class TestLink extends LocalLink {
  protected say(): void {}
}

type App = (request: http.IncomingMessage, response: http.ServerResponse) => void;
type Protocol = (typeof PROTOCOLS)[number];
const PROTOCOLS = ['HTTP/1.1', 'HTTP/2'] as const;

/** Servers of a worker whose app keeps each request open. Only the first is the app's own. */
async function start(
  limit: LimitOptions,
  { protocol = 'HTTP/1.1', app, windows = false }: Partial<Setup> = {},
) {
  const local = new TestLink({ slot: 0, pid: 1, generation: 0 }, 'shared');
  local.configure(resolveOptions({ limit }, {}));
  local.endpoints = ['/health'];
  const open = new Map<string, http.ServerResponse>();
  const own: App = (request, response) => {
    open.set(request.url!, response);
    app?.(request, response);
  };
  const create = () =>
    protocol === 'HTTP/2' ? http2.createServer(own as never) : http.createServer(own);
  const servers = [0, 1].map(() => create() as http.Server);
  for (const server of servers) {
    local.followServer(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }
  await local.limitRequests(servers[0]!);
  // Then only requests make the limit act. The servers go on listening.
  if (!windows) servers[0]!.emit('close');
  const gate = local.gate!;
  gate.routes.add('get', '/vital/:id', 'critical');
  gate.routes.add('get', '/batch/:id', 'sheddable');
  const urls = servers.map(
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  );
  const sessions = protocol === 'HTTP/2' ? urls.map((url) => http2.connect(url)) : undefined;
  onTestFinished(() => {
    local.meter.stop();
    local.tracker.unfollow();
    for (const session of sessions ?? []) session.destroy();
    for (const server of servers) {
      server.closeAllConnections?.();
      server.close();
    }
  });
  /** Sends a request. @returns its answer: the status, and the advice of a refusal. */
  const ask = async (path: string, server = 0): Promise<string> => {
    if (sessions === undefined) {
      const answer = await fetch(`${urls[server]}${path}`);
      await answer.text();
      return `${answer.status} ${answer.headers.get('retry-after') ?? ''}`.trim();
    }
    const stream = sessions[server]!.request({ ':path': path });
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    await text(stream);
    return `${Number(headers[':status'])} ${headers['retry-after'] ?? ''}`.trim();
  };
  const opened = (...paths: string[]) =>
    vi.waitFor(() => expect([...open.keys()].sort()).toEqual(paths.sort()));
  const held = (count: number) => vi.waitFor(() => expect(gate.held.size).toBe(count));
  return { local, gate, open, ask, opened, held, urls, servers };
}

interface Setup {
  readonly protocol: Protocol;
  readonly app: App;
  readonly windows: boolean;
}

/** The wait for a place is never over in these tests, except where it is meant. */
const FOR_EVER = { queueMs: 60_000 };

describe.each(PROTOCOLS)('a worker at its limit, by %s', (protocol) => {
  it('lets as many requests wait, in order, and refuses more with 503 and Retry-After', async () => {
    const { local, open, ask, opened, held } = await start(
      { maxRequests: 1, ...FOR_EVER },
      { protocol },
    );
    const first = ask('/1');
    await opened('/1');
    const second = ask('/2');
    await held(1);
    expect(await ask('/3')).toBe('503 1');
    expect(local.requestLimit).toEqual({ limit: 1, shed: { normal: 1, sheddable: 0 } });
    open.get('/1')!.end();
    expect(await first).toBe('200');
    await opened('/1', '/2');
    open.get('/2')!.end();
    expect(await second).toBe('200');
    await held(0);
  });

  it('answers critical routes and the own endpoints at once', async () => {
    const { ask, opened, open } = await start({ maxRequests: 1, ...FOR_EVER }, { protocol });
    const asked = ['/1', '/vital/7', '/health', '/health/live'];
    const answers = [];
    for (const [index, path] of asked.entries()) {
      answers.push(ask(path));
      await opened(...asked.slice(0, index + 1));
    }
    for (const response of open.values()) response.end();
    expect(await Promise.all(answers)).toEqual(['200', '200', '200', '200']);
  });

  it('refuses a sheddable request that waits, for a normal one', async () => {
    const { local, ask, opened, held } = await start({ maxRequests: 1, ...FOR_EVER }, { protocol });
    void ask('/1').catch(() => {});
    await opened('/1');
    const batch = ask('/batch/7');
    await held(1);
    void ask('/2').catch(() => {});
    expect(await batch).toBe('503 1');
    await held(1);
    expect(await ask('/batch/8')).toBe('503 1');
    expect(local.requestLimit!.shed).toEqual({ normal: 0, sheddable: 2 });
  });

  it('refuses a request that has waited for queueMs', async () => {
    const { ask, opened } = await start({ maxRequests: 1, queueMs: 30 }, { protocol });
    void ask('/1').catch(() => {});
    await opened('/1');
    const began = performance.now();
    expect(await ask('/2')).toBe('503 1');
    expect(performance.now() - began).toBeGreaterThanOrEqual(29);
  });

  it('does not count an open event stream', async () => {
    const app: App = (request, response) => {
      if (request.url !== '/events') return void response.end();
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n');
    };
    const setup = { protocol, app, windows: true };
    const { ask, opened } = await start({ maxRequests: 1, ...FOR_EVER }, setup);
    void ask('/events').catch(() => {});
    await opened('/events');
    expect(await ask('/1')).toBe('200');
  });

  it('does not limit another server of the process', async () => {
    const { ask, opened } = await start({ maxRequests: 1, ...FOR_EVER }, { protocol });
    for (const path of ['/1', '/2', '/3']) void ask(path, 1).catch(() => {});
    await opened('/1', '/2', '/3');
  });
});

it('counts no upgraded connection, and upgrades one also at its limit', async () => {
  const { servers, ask, opened, held, open, urls } = await start({ maxRequests: 1, ...FOR_EVER });
  servers[0]!.on('upgrade', (_, socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  );
  const upgrade = async () => {
    const socket = net.connect(Number(new URL(urls[0]!).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(
      'GET /ws HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    );
    expect(String(await once(socket, 'data'))).toContain('101');
  };
  await upgrade();
  const first = ask('/1');
  await opened('/1');
  void ask('/2').catch(() => {});
  await held(1);
  await upgrade();
  open.get('/1')!.end();
  expect(await first).toBe('200');
});

it('gives the app a request that waited in the asynchronous context of that request', async () => {
  const storage = new AsyncLocalStorage<unknown>();
  const seen = new Map<string, unknown>();
  const app: App = ({ url }) => seen.set(url!, storage.getStore());
  const { local, open, ask, opened, held } = await start({ maxRequests: 1, ...FOR_EVER }, { app });
  local.tracker.scopes.enter = (scope) => storage.enterWith(scope.waiting!.req.url);
  void ask('/1').catch(() => {});
  await opened('/1');
  void ask('/2').catch(() => {});
  await held(1);
  open.get('/1')!.end();
  await opened('/1', '/2');
  expect([...seen]).toEqual([
    ['/1', '/1'],
    ['/2', '/2'],
  ]);
});

it('does not give the app a request whose client has left while it waited', async () => {
  const { local, open, ask, opened, held, urls } = await start({ maxRequests: 1, ...FOR_EVER });
  void ask('/1').catch(() => {});
  await opened('/1');
  const left = http.get(`${urls[0]}/left`, { agent: false }).on('error', () => {});
  await held(1);
  left.destroy();
  await vi.waitFor(() => expect([...local.tracker.connections]).toHaveLength(1));
  open.get('/1')!.end();
  await held(0);
  const last = ask('/2');
  await opened('/1', '/2');
  open.get('/2')!.end();
  expect(await last).toBe('200');
});

it('frees the place of a request whose client has left', async () => {
  const { ask, opened, urls } = await start({ maxRequests: 1, ...FOR_EVER });
  const left = http.get(`${urls[0]}/left`, { agent: false }).on('error', () => {});
  await opened('/left');
  void ask('/2').catch(() => {});
  left.destroy();
  await opened('/left', '/2');
});

it('reads requests while a handler computes, so that it sees all that wait', async () => {
  const app: App = (_, response) => {
    const end = performance.now() + 20;
    while (performance.now() < end);
    response.end();
  };
  const { local, gate, opened, urls } = await start({ ...FOR_EVER }, { app });
  const port = Number(new URL(urls[0]!).port);
  const sockets = Array.from({ length: 9 }, () => net.connect(port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await vi.waitFor(() => expect(local.tracker.openConnections).toBe(9));
  const most = { held: 0 };
  const add = gate.held.add.bind(gate.held);
  gate.held.add = (request) => {
    const held = add(request);
    most.held = Math.max(most.held, held.size);
    return held;
  };
  // All are there when the event loop looks for the next time.
  sockets.forEach((socket, i) => socket.write(`GET /${i} HTTP/1.1\r\nhost: test\r\n\r\n`));
  await opened(...sockets.map((_, i) => `/${i}`));
  expect(most.held).toBe(8);
  for (const socket of sockets) socket.destroy();
});
