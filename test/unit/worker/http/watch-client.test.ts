import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { CONNECTION } from '../../../../src/worker/http/connection.js';
import { watchClient } from '../../../../src/worker/http/watch-client.js';
import { FakeServer } from '../../support/fake-traffic.js';

/** A response over HTTP/1.1, as far as anything looks at it. */
function http1() {
  const server = new FakeServer();
  const client = server.connect();
  const respond = () => {
    const { request, response } = client.send();
    Object.assign(request, { socket: client.socket });
    return Object.assign(response, { writableFinished: false }) as unknown as ServerResponse & {
      writableFinished: boolean;
    };
  };
  const watchers = () => client.connection?.watchers?.size ?? 0;
  return { server, client, respond, watchers };
}

/** One over HTTP/2, as Node has it: it knows no `destroyed` of its own. */
class Http2Response extends EventEmitter {
  writableFinished = false;
  readonly stream = { destroyed: false };

  get response(): ServerResponse {
    return this as unknown as ServerResponse;
  }

  close(): void {
    this.stream.destroyed = true;
    this.emit('close');
  }
}

function counter() {
  const counted = { times: 0, gone: () => void (counted.times += 1) };
  return counted;
}

describe('a client that goes away before its answer is complete', () => {
  it('is told of once', () => {
    const { client, respond, server } = http1();
    const counted = counter();
    watchClient(respond(), counted.gone);
    expect(counted.times).toBe(0);
    client.close();
    expect(counted.times).toBe(1);
    server.stop();
  });

  it('is told of to all that are pipelined, and to all who watch', () => {
    const { client, respond, server } = http1();
    const counted = counter();
    const [first, second] = [respond(), respond()];
    for (const response of [first, second, second]) watchClient(response, counted.gone);
    client.close();
    expect(counted.times).toBe(3);
    server.stop();
  });

  it('is not told of to whoever has ended the watch, and nothing is left of that', () => {
    const { client, respond, server, watchers } = http1();
    const [ended, other] = [counter(), counter()];
    const response = respond();
    const end = watchClient(response, ended.gone);
    watchClient(response, other.gone);
    expect(watchers()).toBe(2);
    end();
    end();
    expect(watchers()).toBe(1);
    client.close();
    expect([ended.times, other.times]).toEqual([0, 1]);
    server.stop();
  });

  it('is told of at once where it is gone, and not again', () => {
    const { client, respond, server, watchers } = http1();
    const response = respond();
    const counted = counter();
    Object.assign(client.socket, { destroyed: true });
    watchClient(response, counted.gone);
    expect(counted.times).toBe(1);
    expect(watchers()).toBe(0);
    client.close();
    expect(counted.times).toBe(1);
    server.stop();
  });

  it('is told of on the connection of TLS too', () => {
    const { client, respond, server } = http1();
    const response = respond();
    const secured = Object.assign(new EventEmitter(), { _parent: client.socket });
    server.server.emit('secureConnection', secured);
    Object.assign(response.req, { socket: secured });
    const counted = counter();
    watchClient(response, counted.gone);
    client.close();
    expect(counted.times).toBe(1);
    server.stop();
  });
});

describe('a client that has its answer', () => {
  it('is not told of', () => {
    const { client, respond, server } = http1();
    const response = respond();
    const counted = counter();
    watchClient(response, counted.gone);
    response.writableFinished = true;
    client.close();
    expect(counted.times).toBe(0);
    server.stop();
  });

  it('is not watched', () => {
    const { respond, server, watchers } = http1();
    const response = respond();
    response.writableFinished = true;
    watchClient(response, () => {})();
    expect(watchers()).toBe(0);
    server.stop();
  });
});

describe('a connection that nobody follows', () => {
  it('is not watched', () => {
    const socket: { [CONNECTION]?: unknown; destroyed: boolean } = { destroyed: false };
    const response = { writableFinished: false, req: { socket } } as unknown as ServerResponse;
    const counted = counter();
    const end = watchClient(response, counted.gone);
    end();
    expect(counted.times).toBe(0);
  });
});

describe('a client over HTTP/2', () => {
  it('is told of once when its stream closes', () => {
    const http2 = new Http2Response();
    const counted = counter();
    watchClient(http2.response, counted.gone);
    http2.close();
    http2.close();
    expect(counted.times).toBe(1);
  });

  it('is told of to all who watch, by one listener', () => {
    const http2 = new Http2Response();
    const [ended, ...others] = [counter(), counter(), counter()];
    const ends = [ended, ...others].map(({ gone }) => watchClient(http2.response, gone));
    ends[0]!();
    expect(http2.listenerCount('close')).toBe(1);
    http2.close();
    expect([ended, ...others].map(({ times }) => times)).toEqual([0, 1, 1]);
  });

  it('is not told of where it has its answer, or the watch has ended', () => {
    const [answered, ended] = [new Http2Response(), new Http2Response()];
    const counted = counter();
    watchClient(answered.response, counted.gone);
    answered.writableFinished = true;
    answered.close();
    watchClient(ended.response, counted.gone)();
    ended.close();
    expect(counted.times).toBe(0);
  });

  it.each(['and that has been told', 'and that has yet to be told'])(
    'is told of at once where its stream is closed, %s, and not again',
    (when) => {
      const http2 = new Http2Response();
      if (when === 'and that has been told') http2.close();
      else http2.stream.destroyed = true;
      const counted = counter();
      watchClient(http2.response, counted.gone);
      expect(counted.times).toBe(1);
      http2.close();
      expect(counted.times).toBe(1);
    },
  );
});
