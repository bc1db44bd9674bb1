import http, { type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import express from 'express';
import { describe, expect, it, onTestFinished } from 'vitest';
import { presetExpressPrototypes } from '../../../../src/worker/listen/express-prototypes.js';
import { UpgradeListeners } from '../../../../src/worker/listen/upgrade-listeners.js';
import { upgradeOf } from '../../../support/upgrade-request.js';

describe('a server on which only we would listen to upgrades', () => {
  it.each([
    { others: 'alone', follow: [] },
    { others: 'with WebSockets followed from before', follow: ['before'] },
    { others: 'with WebSockets followed from later', follow: ['after'] },
  ])(
    'serves an upgrade as a request again when nobody listens to upgrades any more, $others',
    async ({ follow }) => {
      const app = express();
      app.get('/', (request, response) => void response.json(request.hostname));
      const server = http.createServer(app);
      const upgraded: string[] = [];
      const track = () =>
        UpgradeListeners.of(server, 'upgrade').add(() => void upgraded.push('followed'));
      if (follow.includes('before')) track();
      const getHttpAdapter = () => ({ getType: () => 'express', getInstance: () => app });
      expect(presetExpressPrototypes({ getHttpServer: () => server, getHttpAdapter })).toBe(true);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      const url = `127.0.0.1:${(server.address() as AddressInfo).port}`;
      if (follow.includes('after')) track();
      const take = (request: IncomingMessage, socket: Socket) => {
        const plain = Object.getPrototypeOf(request) === http.IncomingMessage.prototype;
        upgraded.push(plain ? 'plain' : 'not plain');
        socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
      };
      // Twice: what ends has to begin again.
      for (const _ of [1, 2]) {
        server.on('upgrade', take);
        expect(await upgradeOf(url)).toMatchObject({ statusCode: 101 });
        expect(upgraded.splice(0)).toEqual([...follow.map(() => 'followed'), 'plain']);
        server.off('upgrade', take);
        expect(server.listenerCount('upgrade')).toBe(0);
        expect(await upgradeOf(url)).toMatchObject({ statusCode: 200 });
      }
    },
  );
});
