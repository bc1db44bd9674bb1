import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import net, { type AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { createGunzip, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { RequestScope } from '../../../../src/contract/snapshot/types.js';
import { RequestTracker } from '../../../../src/worker/serve/tracker.js';
import { held } from '../../../support/held.js';
import { FakeServer } from '../../support/fake-traffic.js';

function start() {
  const server = new FakeServer();
  onTestFinished(() => server.stop());
  const { scopes } = server.tracker;
  scopes.follow(true);
  const begin = vi.spyOn(scopes, 'begin');
  onTestFinished(() => scopes.follow(false));
  /** The response of each scope that was entered. */
  const waiting = () => begin.mock.results.map(({ value }) => (value as RequestScope).waiting);
  return { client: server.connect(), waiting };
}

describe('scopes of requests', () => {
  it('are one for each request that is pipelined, and end in the order of the answers', () => {
    const { client, waiting } = start();
    const exchanges = [client.send(), client.parse(), client.parse()];
    for (const answered of exchanges.keys()) {
      expect(waiting()).toEqual(
        exchanges.map(({ response }, i) => (i < answered ? undefined : response)),
      );
      exchanges[answered]!.finish();
    }
    expect(waiting()).toEqual([undefined, undefined, undefined]);
  });

  it('keep no response of a connection that is gone', () => {
    const { client, waiting } = start();
    client.send();
    client.parse();
    client.close();
    expect(waiting()).toEqual([undefined, undefined]);
  });
});

/** A server whose requests are followed, with the storage that their scopes are entered in. */
async function listen<S extends net.Server>(server: S) {
  const tracker = new RequestTracker();
  tracker.follow(server as unknown as http.Server);
  tracker.scopes.follow(true);
  const scopes = { getStore: () => tracker.scopes.current };
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    tracker.scopes.follow(false);
    tracker.unfollow();
    tracker.destroyAll();
    server.close();
  });
  return { server, scopes, port: (server.address() as AddressInfo).port };
}

const post = (path: string) => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab`;
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

describe('scopes of requests on real connections', () => {
  it('lead from all that is done for a request to its response', async () => {
    const { server, scopes, port } = await listen(http.createServer());
    const found: boolean[] = [];
    server.on('request', (request, response) => {
      request.resume();
      request.on('end', () => {
        setTimeout(() => {
          void Promise.resolve().then(() => {
            found.push(scopes.getStore()?.waiting === response);
            response.end();
          });
        }, 5);
      });
    });
    const socket = net.connect(port, '127.0.0.1');
    const request = post('/');
    for (const [requests, answers] of [
      [1, 1],
      [1, 2],
      [3, 5],
      [1, 6],
    ] as const) {
      socket.write(request.repeat(requests));
      while (found.length < answers) await once(socket, 'data');
    }
    expect(found).toEqual(Array.from({ length: 6 }, () => true));
  });

  it('lead from a body that arrives in pieces and is unpacked, as a plugin of Fastify does', async () => {
    const { server, scopes, port } = await listen(http.createServer());
    const found: boolean[] = [];
    server.on('request', (request, response) => {
      const unpacked = request.pipe(createGunzip());
      unpacked.on('data', () => found.push(scopes.getStore()?.waiting === response));
      unpacked.on('end', () => {
        found.push(scopes.getStore()?.waiting === response);
        response.end();
      });
    });
    const body = gzipSync(randomBytes(200_000));
    const socket = net.connect(port, '127.0.0.1');
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`);
    for (let at = 0; at < body.length; at += 50_000) {
      socket.write(body.subarray(at, at + 50_000));
      await setImmediate();
    }
    await once(socket, 'data');
    expect(found.length).toBeGreaterThan(4);
    expect(new Set(found)).toEqual(new Set([true]));
  });

  it.each([
    ['the next of its connection', [get('/first'), get('/second')]],
    ['the next of its connection, with bodies', [post('/first'), post('/second')]],
    ['one that was pipelined behind it', [get('/first') + get('/second')]],
    ['one that was pipelined behind it, with bodies', [post('/first') + post('/second')]],
  ])('never lead from a request that is answered to %s', async (_next, writes) => {
    const { server, scopes, port } = await listen(http.createServer());
    const [begun, judged] = [held<void>(), held<unknown>()];
    const own: boolean[] = [];
    server.on('request', (request, response) => {
      request.resume().once('end', () => {
        own.push(scopes.getStore()?.waiting === response);
        if (request.url === '/first') {
          response.end();
          void begun.promise.then(() => judged.resolve(scopes.getStore()?.waiting));
        } else {
          begun.resolve();
          void judged.promise.then(() => response.end());
        }
      });
    });
    const socket = net.connect(port, '127.0.0.1');
    for (const text of writes) {
      socket.write(text);
      await once(socket, 'data');
    }
    expect(await judged.promise).toBeUndefined();
    expect(own).toEqual([true, true]);
  });

  it('are those of their streams with HTTP/2, and end with their answers', async () => {
    const { server, scopes, port } = await listen(http2.createServer());
    const own: [url: string, boolean][] = [];
    const [begun, judged] = [held<void>(), held<unknown>()];
    server.on('request', (request, response) => {
      request.resume().once('end', () => {
        own.push([request.url, (scopes.getStore()?.waiting as unknown) === response]);
        if (request.url === '/second') begun.resolve();
        else {
          response.end();
          // What is closed is over, with the tick in which that is told.
          response.once('close', () => {
            void begun.promise.then(() => judged.resolve(scopes.getStore()?.waiting));
          });
        }
      });
    });
    const session = http2.connect(`http://127.0.0.1:${port}`);
    onTestFinished(() => session.destroy());
    const ask = (path: string) => session.request({ ':path': path, ':method': 'POST' }).resume();
    const [first, second] = [ask('/first'), ask('/second')];
    for (let requests = 0; requests < 2; requests += 1) await once(server, 'request');
    first.end('b');
    await once(first, 'close');
    second.end('b');
    expect(await judged.promise).toBeUndefined();
    expect(own).toEqual([
      ['/first', true],
      ['/second', true],
    ]);
  });
});
