import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { RequestScope } from '../../src/snapshot/index.js';
import { RequestTracker } from '../../src/worker/request-tracker.js';
import { FakeServer } from './fake-traffic.js';

const servers: FakeServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.stop();
});

function start() {
  const server = new FakeServer();
  servers.push(server);
  const entered: RequestScope[] = [];
  server.tracker.followScopes((scope) => entered.push(scope));
  return { server, entered };
}

describe('scopes of requests', () => {
  it('are one for a connection whose requests come one after the other', () => {
    const { server, entered } = start();
    const client = server.connect();
    expect(entered).toHaveLength(1);
    const [scope] = entered;
    expect(scope!.waiting).toBeUndefined();
    const first = client.send();
    expect(scope!.waiting).toBe(first.response);
    first.finish();
    expect(scope!.waiting).toBeUndefined();
    const second = client.send();
    expect(scope!.waiting).toBe(second.response);
    expect(entered).toHaveLength(1);
  });

  it('are one for each request that is pipelined, until the connection is idle again', () => {
    const { server, entered } = start();
    const client = server.connect();
    const exchanges = [client.send(), client.parse(), client.parse()];
    expect(entered.map(({ waiting }) => waiting)).toEqual(
      exchanges.map(({ response }) => response),
    );
    for (const exchange of exchanges) exchange.finish();
    const alone = client.send();
    expect(entered).toHaveLength(4);
    expect(entered[3]).toBe(entered[0]);
    expect(entered[3]!.waiting).toBe(alone.response);
  });

  it('keep no response of a connection that is gone', () => {
    const { server, entered } = start();
    const client = server.connect();
    client.send();
    client.close();
    expect(entered[0]!.waiting).toBeUndefined();
  });

  it('are not those of another server', () => {
    const { entered } = start();
    const other = new FakeServer();
    servers.push(other);
    other.connect().send();
    expect(entered).toEqual([]);
  });

  it('lead from all that is done for a request to its response, on real connections', async () => {
    const scopes = new AsyncLocalStorage<RequestScope>();
    const found: boolean[] = [];
    const server = http.createServer((request, response) => {
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
    const tracker = new RequestTracker();
    tracker.follow(server);
    tracker.followScopes((scope) => scopes.enterWith(scope));
    onTestFinished(() => {
      tracker.unfollow();
      server.close();
      server.closeAllConnections();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    const request = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab';
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
});
