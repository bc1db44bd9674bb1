import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import express from 'express';
import { request as fetchWith } from 'undici';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { presetExpressPrototypes } from '../../../../src/worker/listen/express-prototypes.js';

/** The answer to a request for an upgrade, taken or not. */
function upgradeOf(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket' };
    http
      .get(`http://${url}`, { headers, agent: false })
      .on('upgrade', (response, socket) => {
        socket.destroy();
        resolve(response);
      })
      .on('response', (response: IncomingMessage & Partial<ServerResponse>) => {
        response.resume();
        resolve(response);
      })
      .on('error', reject);
  });
}

const open: http.Server[] = [];

afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Imitates the parts of a Nest app on Express that the code reads. */
function appOf(server: unknown, instance: unknown, type = 'express') {
  return {
    getHttpServer: () => server,
    getHttpAdapter: () => ({ getType: () => type, getInstance: () => instance }),
  };
}

/** An Express app on a server whose prototypes are preset, listening on loopback. */
async function serve(app: express.Express, server: http.Server = http.createServer(app)) {
  expect(presetExpressPrototypes(appOf(server, app))).toBe(true);
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function get(url: string): Promise<unknown> {
  const { body } = await fetchWith(`http://${url}`);
  return body.json();
}

describe('presetExpressPrototypes', () => {
  it('creates requests and responses with the prototypes that Express would give them, and no other difference', async () => {
    const own = (value: object) => Reflect.ownKeys(value).map(String);
    const app = express();
    app.get('/', (request, response) => {
      const isSubclass =
        request instanceof http.IncomingMessage && response instanceof http.ServerResponse;
      const names = [request.constructor.name, response.constructor.name];
      const keys = Object.keys(Object.getPrototypeOf(request) as object);
      response.json([isSubclass, names, keys, own(request), own(response)]);
    });
    const server = http.createServer(app);
    const seen: unknown[] = [];
    // Before Express has seen them.
    server.prependListener('request', (request, response) => {
      seen.push(Object.getPrototypeOf(request), Object.getPrototypeOf(response));
    });
    const preset = (await get(await serve(app, server))) as unknown[];
    expect(seen[0]).toBe(app.request);
    expect(seen[1]).toBe(app.response);
    expect(preset.slice(0, 3)).toEqual([true, ['IncomingMessage', 'ServerResponse'], ['app']]);

    const plain = http.createServer(app);
    open.push(plain);
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    expect(preset).toEqual(await get(`127.0.0.1:${(plain.address() as AddressInfo).port}`));
  });

  it('lets sub-apps and mounted routers have theirs, and gives back the prototypes of the app', async () => {
    const app = express();
    const inner = express();
    Reflect.set(inner.request, 'where', 'inner');
    Reflect.set(app.request, 'where', 'outer');
    const where = (request: express.Request) => (request as unknown as { where: string }).where;
    inner.get(
      '/here',
      (request, response) => void response.json([where(request), request.app === inner]),
    );
    const router = express.Router();
    router.get(
      '/here',
      (request, response) => void response.json([where(request), request.app === app]),
    );
    app.use('/inner', inner);
    app.use('/router', router);
    app.use(
      (request, response) => void response.json(['after', where(request), request.app === app]),
    );
    const url = await serve(app);
    expect(await get(`${url}/inner/here`)).toEqual(['inner', true]);
    expect(await get(`${url}/router/here`)).toEqual(['outer', true]);
    expect(await get(`${url}/inner/elsewhere`)).toEqual(['after', 'outer', true]);
  });

  it.each(['before', 'after'])(
    'hands a plain request to a listener of upgrades that is added %s it',
    async (when) => {
      const app = express();
      const server = http.createServer(app);
      const upgrade = (request: IncomingMessage, socket: Socket) => {
        // A getter alone on Express's prototype: in strict mode this would throw.
        Reflect.set(request, 'query', 'assigned');
        const plain = Object.getPrototypeOf(request) === http.IncomingMessage.prototype;
        socket.end(`HTTP/1.1 101 Switching Protocols\r\nX-Plain: ${plain}\r\n\r\n`);
      };
      if (when === 'before') server.on('upgrade', upgrade);
      const url = await serve(app, server);
      if (when === 'after') server.on('upgrade', upgrade);
      const { headers } = await upgradeOf(url);
      expect(headers['x-plain']).toBe('true');
    },
  );

  it('changes nothing on a Node whose constructors are classes', () => {
    const { IncomingMessage: original } = http;
    class Future extends original {}
    Object.assign(http, { IncomingMessage: Future });
    onTestFinished(() => void Object.assign(http, { IncomingMessage: original }));
    const app = express();
    const server = http.createServer({ IncomingMessage: Future }, app);
    expect(presetExpressPrototypes(appOf(server, app))).toBe(false);
  });

  it('changes HTTPS, and leaves HTTP/2, other adapters and classes of the app alone', () => {
    const app = express();
    expect(presetExpressPrototypes(appOf(https.createServer(app), app))).toBe(true);
    class Own extends http.IncomingMessage {}
    const own = http.createServer({ IncomingMessage: Own }, app);
    const plain = http.createServer(app);
    expect(presetExpressPrototypes(appOf(http2.createServer(), app))).toBe(false);
    expect(presetExpressPrototypes(appOf(own, app))).toBe(false);
    expect(presetExpressPrototypes(appOf(plain, app, 'fastify'))).toBe(false);
    expect(presetExpressPrototypes({ getHttpServer: () => plain })).toBe(false);
    const classes = Object.getOwnPropertySymbols(plain).map(
      (key) => Reflect.get(plain, key) as unknown,
    );
    expect(classes).toEqual(expect.arrayContaining([http.IncomingMessage, http.ServerResponse]));
  });
});
