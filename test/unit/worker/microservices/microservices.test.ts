import { once } from 'node:events';
import net, { type AddressInfo, type Server } from 'node:net';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Microservices } from '../../../../src/worker/microservices/microservices.js';
import type { ConnectionHandle } from '../../../../src/worker/microservices/rpc-connection.js';
import { selfSignedCertificate } from '../../../support/certificate.js';
import { NEST_MICROSERVICES } from '../../../support/nest-microservices.js';
import { PATIENCE_MS } from '../../../support/patience.js';

/** For what a real socket does in its own time. */
const soon = (check: () => void) => vi.waitFor(check, { timeout: PATIENCE_MS });

/** A message of a client, in Nest's frame. */
const frame = (id: string) => {
  const text = JSON.stringify({ pattern: 'ask', data: null, id });
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

describe.each(NEST_MICROSERVICES)(
  'a connection of a TCP microservice of Nest $nest',
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
      const given: { server: string; handle: ConnectionHandle }[] = [];
      const handOver = vi.fn((server: string, handle: ConnectionHandle) => {
        given.push({ server, handle });
        return new Promise<void>(() => {}); // it is on its way
      });
      return {
        address: `127.0.0.1:${port}`,
        microservices,
        handler,
        answer,
        client,
        socket,
        received: () => text,
        given,
        handOver,
      };
    }

    it('is given away once it owes no answer, before its next message is read', async () => {
      const { address, microservices, handler, answer, client, received, given, handOver } =
        await start();
      client.write(frame('1'));
      await soon(() => expect(handler).toHaveBeenCalled());
      microservices.stopConsuming();
      microservices.closeIdle(true, handOver);
      expect(given).toEqual([]);

      answer('done');

      await soon(() => expect(given).toMatchObject([{ server: address }]));
      await soon(() => expect(received()).toContain('"response":"done"'));
      client.write(frame('2')); // for whoever has it next
      await readWhatWasWritten();
      expect(handler).toHaveBeenCalledOnce();
    });

    it('is kept while a message is half read', async () => {
      const { microservices, handler, answer, client, socket, given, handOver } = await start();
      answer('done');
      const [head, tail] = [frame('1').slice(0, 10), frame('1').slice(10)];
      client.write(head);
      await soon(() => expect(socket.bytesRead).toBe(head.length));
      microservices.stopConsuming();
      microservices.closeIdle(true, handOver);
      microservices.closeIdle(false, handOver);
      expect(given).toEqual([]);

      client.write(tail);

      await soon(() => expect(handler).toHaveBeenCalled());
      await soon(() => expect(given).toHaveLength(1));
    });

    it('is read no more for the second half of the drain, and so comes to owe none', async () => {
      const { microservices, handler, answer, client, given, handOver } = await start();
      client.write(frame('1'));
      await soon(() => expect(handler).toHaveBeenCalled());
      microservices.stopConsuming();
      microservices.closeIdle(false, handOver);

      client.write(frame('2')); // for whoever has it next
      await readWhatWasWritten();
      answer('done');

      await soon(() => expect(given).toHaveLength(1));
      expect(handler).toHaveBeenCalledOnce();
    });

    it('is not quiet before it has been looked at: what it sent before it was accepted is unread', async () => {
      const { microservices, socket } = await start();
      const ended = vi.spyOn(socket, 'end');
      const late = performance.now() + 60_000; // the process stood still after it had accepted
      const now = vi.spyOn(performance, 'now').mockImplementation(() => late);
      onTestFinished(() => now.mockRestore());

      microservices.closeIdle(true);
      expect(ended).not.toHaveBeenCalled();

      now.mockImplementation(() => late + 100);
      microservices.closeIdle(true);
      expect(ended).toHaveBeenCalledOnce();
    });

    it('is ended, once it is quiet, where it has come back', async () => {
      const { address, microservices, client, given, handOver } = await start();
      microservices.stopConsuming();
      const closed = once(client, 'close');
      const own = net.createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
      onTestFinished(() => void own.close());
      await once(own, 'listening');
      const other = net.connect((own.address() as AddressInfo).port, '127.0.0.1');
      onTestFinished(() => void other.destroy());
      const [returned] = (await once(own, 'connection')) as [net.Socket];

      microservices.take(address, Reflect.get(returned, '_handle') as ConnectionHandle);
      other.write(frame('1'));
      const late = performance.now();
      const now = vi.spyOn(performance, 'now').mockImplementation(() => late);
      onTestFinished(() => now.mockRestore());
      microservices.closeIdle(true, handOver);
      now.mockImplementation(() => late + 150);
      microservices.closeIdle(true, handOver);

      await closed;
      expect(given).toEqual([]);
    });

    it('is ended where it is encrypted: its keys are in its process alone', async () => {
      const { microservices, client, given, handOver } = await start(selfSignedCertificate());
      const closed = once(client, 'close');
      microservices.stopConsuming();

      microservices.closeIdle(false, handOver);

      await closed;
      expect(given).toEqual([]);
    });

    it('is closed where there is no such server', async () => {
      const { microservices } = await start();
      const handle = { readStop: vi.fn(), close: vi.fn() };

      microservices.take('127.0.0.1:1', handle);

      expect(handle.close).toHaveBeenCalledOnce();
    });
  },
);
