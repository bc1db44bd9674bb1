import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { CONNECTION } from '../../../../src/worker/serve/connection.js';
import { watchClient } from '../../../../src/worker/serve/request.js';
import { FakeServer } from '../../support/fake-traffic.js';

/** A response over HTTP/1.1, as far as anything looks at it. */
function http1() {
  const server = new FakeServer();
  onTestFinished(() => server.stop());
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

describe('a client that goes away before its answer is complete', () => {
  it('is told of once', () => {
    const { client, respond } = http1();
    const gone = vi.fn();
    watchClient(respond(), gone);
    expect(gone).not.toHaveBeenCalled();
    client.close();
    expect(gone).toHaveBeenCalledTimes(1);
  });

  it('is told of to all that are pipelined, and to all who watch', () => {
    const { client, respond } = http1();
    const gone = vi.fn();
    const [first, second] = [respond(), respond()];
    for (const response of [first, second, second]) watchClient(response, gone);
    client.close();
    expect(gone).toHaveBeenCalledTimes(3);
  });

  it('is not told of to whoever has ended the watch, and nothing is left of that', () => {
    const { client, respond, watchers } = http1();
    const [ended, other] = [vi.fn(), vi.fn()];
    const response = respond();
    const end = watchClient(response, ended);
    watchClient(response, other);
    expect(watchers()).toBe(2);
    end();
    end();
    expect(watchers()).toBe(1);
    client.close();
    expect([ended, other].map(({ mock }) => mock.calls.length)).toEqual([0, 1]);
  });

  it('is told of at once where it is gone, and not again', () => {
    const { client, respond, watchers } = http1();
    const response = respond();
    const gone = vi.fn();
    Object.assign(client.socket, { destroyed: true });
    watchClient(response, gone);
    expect(gone).toHaveBeenCalledTimes(1);
    expect(watchers()).toBe(0);
    client.close();
    expect(gone).toHaveBeenCalledTimes(1);
  });

  it('is told of on the connection of TLS too', () => {
    const { client, respond, server } = http1();
    const response = respond();
    const secured = Object.assign(new EventEmitter(), { _parent: client.socket });
    server.server.emit('secureConnection', secured);
    Object.assign(response.req, { socket: secured });
    const gone = vi.fn();
    watchClient(response, gone);
    client.close();
    expect(gone).toHaveBeenCalledTimes(1);
  });
});

describe('a client that has its answer', () => {
  it('is not told of', () => {
    const { client, respond } = http1();
    const response = respond();
    const gone = vi.fn();
    watchClient(response, gone);
    response.writableFinished = true;
    client.close();
    expect(gone).not.toHaveBeenCalled();
  });

  it('is not watched', () => {
    const { respond, watchers } = http1();
    const response = respond();
    response.writableFinished = true;
    watchClient(response, () => {})();
    expect(watchers()).toBe(0);
  });
});

describe('a connection that nobody follows', () => {
  it('is not watched', () => {
    const socket: { [CONNECTION]?: unknown; destroyed: boolean } = { destroyed: false };
    const response = { writableFinished: false, req: { socket } } as unknown as ServerResponse;
    const gone = vi.fn();
    const end = watchClient(response, gone);
    end();
    expect(gone).not.toHaveBeenCalled();
  });
});

describe('a client over HTTP/2', () => {
  it('is told of once when its stream closes', () => {
    const http2 = new Http2Response();
    const gone = vi.fn();
    watchClient(http2.response, gone);
    http2.close();
    http2.close();
    expect(gone).toHaveBeenCalledTimes(1);
  });

  it('is told of to all who watch, by one listener', () => {
    const http2 = new Http2Response();
    const watchers = [vi.fn(), vi.fn(), vi.fn()];
    const ends = watchers.map((gone) => watchClient(http2.response, gone));
    ends[0]!();
    expect(http2.listenerCount('close')).toBe(1);
    http2.close();
    expect(watchers.map(({ mock }) => mock.calls.length)).toEqual([0, 1, 1]);
  });

  it('is not told of where it has its answer, or the watch has ended', () => {
    const [answered, ended] = [new Http2Response(), new Http2Response()];
    const gone = vi.fn();
    watchClient(answered.response, gone);
    answered.writableFinished = true;
    answered.close();
    watchClient(ended.response, gone)();
    ended.close();
    expect(gone).not.toHaveBeenCalled();
  });

  it.each(['and that has been told', 'and that has yet to be told'])(
    'is told of at once where its stream is closed, %s, and not again',
    (when) => {
      const http2 = new Http2Response();
      if (when === 'and that has been told') http2.close();
      else http2.stream.destroyed = true;
      const gone = vi.fn();
      watchClient(http2.response, gone);
      expect(gone).toHaveBeenCalledTimes(1);
      http2.close();
      expect(gone).toHaveBeenCalledTimes(1);
    },
  );
});
