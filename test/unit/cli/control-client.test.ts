import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ControlServer } from '../../../src/control/control-server.js';
import { ControlClient } from '../../../src/cli/control-client.js';
import { eventually } from '../../support/eventually.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

/** A client, and the server of its primary. */
async function connected() {
  const path = join(temporaryDirectory(), 'a.sock');
  const primary = createServer();
  await once(primary.listen(path), 'listening');
  onTestFinished(() => void primary.close());
  return { client: new ControlClient({ name: 'shop', pid: undefined, path }), primary };
}

function serving() {
  const reload = vi.fn(({ body }: { readonly body: unknown }) => ({ body }));
  const routes = { 'GET /v1/status': () => ({}), 'POST /v1/reload': reload };
  return { server: new ControlServer(routes, () => {}), reload };
}

it('asks for a change', async () => {
  const { client, primary } = await connected();
  const { server } = serving();
  primary.on('connection', (socket) => server.take(socket));
  expect(await client.post('/v1/reload', { by: 1 })).toEqual({ body: { by: 1 } });
});

it('says of a primary that is blocked that it does not answer, and asks it for no change', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { client, primary } = await connected();
  const { server, reload } = serving();
  const sockets: Socket[] = [];
  primary.on('connection', (socket) => void sockets.push(socket));
  let told = '';
  client.post('/v1/reload').catch((error: Error) => (told = error.message));
  await once(primary, 'connection');
  await vi.advanceTimersByTimeAsync(1_000);
  vi.useRealTimers();
  await eventually('it is said', () => told.includes('did not answer within 1000 ms'));
  for (const socket of sockets) server.take(socket);
  await once(sockets[0]!, 'close');
  expect([sockets.length, reload.mock.calls]).toEqual([1, []]);
});
