import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { watchClient } from '../../../../src/worker/serve/request-scope.js';

/** The socket of a connection, or a stream of HTTP/2. */
class Carrier extends EventEmitter {
  destroyed = false;

  close(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

/** A response that a client waits for. */
type Response = ServerResponse & { writableFinished: boolean };

const PROTOCOLS = {
  'HTTP/1.1': (socket: Carrier) => ({ req: { socket } }),
  'HTTP/2': (stream: Carrier) => ({ stream }),
};

describe.each(Object.entries(PROTOCOLS))('a client over %s', (_, responseOn) => {
  function start() {
    const carrier = new Carrier();
    const respond = () =>
      ({ writableFinished: false, ...responseOn(carrier) }) as unknown as Response;
    return { carrier, respond, gone: vi.fn() };
  }

  it('that disconnects before its response is complete is reported once to each watcher', () => {
    const { carrier, respond, gone } = start();
    const [first, second] = [respond(), respond()];
    for (const response of [first, second, second]) watchClient(response, gone);
    expect(gone).not.toHaveBeenCalled();
    expect(carrier.listenerCount('close')).toBe(1);
    carrier.close();
    carrier.emit('close');
    expect(gone).toHaveBeenCalledTimes(3);
  });

  it('is not reported to a watcher that has ended its watch', () => {
    const { carrier, respond, gone } = start();
    const response = respond();
    const other = vi.fn();
    const end = watchClient(response, gone);
    watchClient(response, other);
    end();
    end();
    carrier.close();
    expect([gone, other].map(({ mock }) => mock.calls.length)).toEqual([0, 1]);
  });

  it('that has disconnected already is reported immediately, and not again', () => {
    const { carrier, respond, gone } = start();
    carrier.destroyed = true;
    watchClient(respond(), gone);
    expect(gone).toHaveBeenCalledTimes(1);
    carrier.close();
    expect(gone).toHaveBeenCalledTimes(1);
  });

  it('that has its response is not reported, and not watched any more', () => {
    const { carrier, respond, gone } = start();
    const response = respond();
    watchClient(response, gone);
    response.writableFinished = true;
    carrier.close();
    expect(gone).not.toHaveBeenCalled();
    carrier.removeAllListeners();
    watchClient(response, gone)();
    expect(carrier.listenerCount('close')).toBe(0);
  });
});

it('a client whose HTTP/2 stream is gone is reported immediately', () => {
  const gone = vi.fn();
  watchClient({ writableFinished: false, stream: undefined } as unknown as Response, gone);
  expect(gone).toHaveBeenCalledOnce();
});
