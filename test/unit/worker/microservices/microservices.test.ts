import { once } from 'node:events';
import net, { type AddressInfo, type Server } from 'node:net';
import tls from 'node:tls';
import { concat, isObservable, lastValueFrom, of, Subject, throwError, toArray } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Microservices } from '../../../../src/worker/microservices/microservices.js';
import { selfSignedCertificate } from '../../../support/certificate.js';
import { PATIENCE_MS } from '../../../support/patience.js';
import { NESTS } from '../../support/nests.js';

/** For what a real socket does in its own time. */
const soon = (check: () => void) => vi.waitFor(check, { timeout: PATIENCE_MS });

/** A message of a client, in Nest's frame: a request, or without `id` an event. */
const frame = (id?: string) => {
  const text = JSON.stringify({ pattern: id === undefined ? 'note' : 'ask', data: null, id });
  return `${text.length}#${text}`;
};

/**
 * Resolves when this process has read everything that others wrote before to sockets that it reads:
 * answers of another connection, written later, have come back.
 */
async function readWhatWasWritten(): Promise<void> {
  const echo = net.createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
  await once(echo, 'listening');
  const client = net.connect((echo.address() as AddressInfo).port, '127.0.0.1');
  for (let i = 0; i < 3; i++) {
    client.write('x');
    await once(client, 'data');
  }
  client.destroy();
  echo.close();
}

describe.each(NESTS)(
  'a connection of a TCP microservice of $nest',
  ({ microservices: nestMicroservices }) => {
    async function start(tlsOptions?: tls.TlsOptions) {
      let answer!: (value: string) => void;
      const answered = new Promise<string>((resolve) => (answer = resolve));
      const handler = vi.fn(() => answered);
      const transport = new nestMicroservices.ServerTCP({
        host: '127.0.0.1',
        port: 0,
        ...(tlsOptions && { tlsOptions }),
      });
      transport.addHandler('ask', handler);
      const noted = vi.fn(async () => {});
      transport.addHandler('note', noted, true);
      const microservices = new Microservices();
      microservices.follow({ getMicroservices: () => [{ serverInstance: transport }] });
      await new Promise<void>((resolve) => transport.listen(() => resolve()));
      onTestFinished(() => transport.close());
      const { port } = (transport.unwrap() as Server).address() as AddressInfo;
      const accepted = once(
        transport.unwrap() as Server,
        tlsOptions ? 'secureConnection' : 'connection',
      );
      const client = tlsOptions
        ? tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
        : net.connect(port, '127.0.0.1');
      onTestFinished(() => void client.destroy());
      let text = '';
      client.setEncoding('utf8').on('data', (data: string) => (text += data));
      const [socket] = (await accepted) as [net.Socket];
      return { microservices, handler, noted, answer, client, socket, received: () => text };
    }

    it('is answered what it has asked, and is ended once it has been quiet', async () => {
      const { microservices, handler, answer, client, received } = await start();
      const closed = once(client, 'close');
      client.write(frame('1'));
      await soon(() => expect(handler).toHaveBeenCalled());
      microservices.stop();
      const now = vi.spyOn(performance, 'now');
      const lookAt = (ms: number) => {
        now.mockImplementation(() => ms);
        microservices.closeIdle(true);
      };
      lookAt(10_000);
      lookAt(20_000);
      expect(client.readableEnded).toBe(false);

      answer('done');
      await soon(() => expect(received()).toContain('"response":"done"'));
      lookAt(20_050);
      await readWhatWasWritten();
      expect(client.readableEnded).toBe(false);
      lookAt(20_100);

      await closed;
    });

    it('is read no more for the second half of the drain, and so comes to owe no answer', async () => {
      const { microservices, handler, answer, client, socket, received } = await start();
      const closed = once(client, 'close');
      client.write(frame('1'));
      await soon(() => expect(handler).toHaveBeenCalled());
      microservices.stop();
      microservices.closeIdle(false);

      client.write(frame('2'));
      await readWhatWasWritten();
      answer('done');
      await soon(() => expect(received()).toContain('"response":"done"'));
      microservices.closeIdle(false);

      await closed;
      expect(handler).toHaveBeenCalledOnce();
      expect(received()).not.toContain('"id":"2"');
      await soon(() => expect(socket.destroyed).toBe(true));
    });

    it('begins nothing that comes after its end', async () => {
      const { microservices, handler, noted, client, socket } = await start();
      client.allowHalfOpen = true;
      const ended = once(client, 'end');
      microservices.stop();
      microservices.closeIdle(false);
      await ended;

      client.write(frame('1') + frame());
      await readWhatWasWritten();

      expect(socket.bytesRead).toBeGreaterThan(0);
      expect(handler).not.toHaveBeenCalled();
      expect(noted).not.toHaveBeenCalled();
      expect(microservices.busy).toBe(true); // until its client closes, too
      client.end();
      await soon(() => expect(microservices.busy).toBe(false));
    });

    it('is not quiet before it has been looked at: what it sent before it was accepted is unread', async () => {
      const { microservices, socket } = await start();
      const ended = vi.spyOn(socket, 'end');
      const late = performance.now() + 60_000; // the process stood still after it had accepted
      const now = vi.spyOn(performance, 'now').mockImplementation(() => late);

      microservices.closeIdle(true);
      expect(ended).not.toHaveBeenCalled();

      now.mockImplementation(() => late + 100);
      microservices.closeIdle(true);
      expect(ended).toHaveBeenCalledOnce();
    });

    it('is ended where it is encrypted', async () => {
      const { microservices, client } = await start(selfSignedCertificate());
      const closed = once(client, 'close');
      microservices.stop();

      microservices.closeIdle(false);

      await closed;
    });

    it('lets the calls of gRPC end, however long they take, if the server was started', () => {
      let ended = () => {};
      const tryShutdown = (done: () => void) => void (ended = done);
      const transports = [{ grpcClient: { tryShutdown } }, {}].map((fields) =>
        // The constructor would ask for the library of gRPC.
        Object.assign(Object.create(nestMicroservices.ServerGrpc.prototype) as object, {
          transportId: nestMicroservices.Transport.GRPC,
          ...fields,
        }),
      );
      const microservices = new Microservices();
      microservices.follow({
        getMicroservices: () => transports.map((each) => ({ serverInstance: each })),
      });

      expect(microservices.stop()).toEqual([]);
      expect(microservices.busy).toBe(true);
      ended();
      expect(microservices.busy).toBe(false);
    });
  },
);

describe('a message handler, of any transport', () => {
  type Handler = ((...args: unknown[]) => unknown) & { isEventHandler?: boolean; next?: Handler };

  function counted(handler: Handler) {
    const transport = { transportId: Symbol('own'), getHandlerByPattern: (): Handler => handler };
    const microservices = new Microservices();
    microservices.follow({ getMicroservices: () => [{ serverInstance: transport }] });
    return { running: () => microservices.running, wrapped: transport.getHandlerByPattern() };
  }

  it('has ended with its value, its rejection or what it throws', async () => {
    const value = counted(() => 1);
    expect([value.wrapped(), value.running()]).toEqual([1, 0]);

    const promise = counted(async () => 2);
    const answer = promise.wrapped();
    expect(promise.running()).toBe(1);
    expect([await answer, promise.running()]).toEqual([2, 0]);

    const rejects = counted(() => Promise.reject(new Error('refused')));
    await expect(rejects.wrapped()).rejects.toThrow('refused');
    const throws = counted(() => {
      throw new Error('at once');
    });
    expect(() => throws.wrapped()).toThrow('at once');
    expect([rejects.running(), throws.running()]).toEqual([0, 0]);
  });

  it('runs until its stream has ended, or nobody wants more of it', async () => {
    const subject = new Subject<number>();
    const { running, wrapped } = counted(async () => concat(of(1, 2), subject));
    const stream = (await wrapped()) as Subject<number>;
    expect(isObservable(stream)).toBe(true);
    const values = lastValueFrom(stream.pipe(toArray()));
    subject.next(3);
    expect(running()).toBe(1);
    subject.complete();
    expect([await values, running()]).toEqual([[1, 2, 3], 0]);

    const endless = counted(() => new Subject());
    (endless.wrapped() as Subject<unknown>).subscribe().unsubscribe();
    const fails = counted(() => throwError(() => new Error('in the stream')));
    await expect(lastValueFrom(fails.wrapped() as Subject<unknown>)).rejects.toThrow('in the');
    expect([endless.running(), fails.running()]).toEqual([0, 0]);
  });

  it('leaves a stream of the app as it was, which others may have subscribed to', () => {
    const subject = new Subject<number>();
    const { running, wrapped } = counted(() => subject);
    const stream = wrapped() as Subject<number>;
    subject.subscribe().unsubscribe();
    expect([running(), Object.hasOwn(subject, 'subscribe')]).toEqual([1, false]);
    stream.subscribe();
    subject.complete();
    expect(running()).toBe(0);
  });

  it('keeps the properties that Nest has set on it', () => {
    const handler: Handler = Object.assign(() => 1, { isEventHandler: true });
    const { wrapped } = counted(handler);
    const next: Handler = () => 2;
    Object.assign(wrapped, { next });
    expect([wrapped.isEventHandler, handler.next]).toEqual([true, next]);
  });
});
