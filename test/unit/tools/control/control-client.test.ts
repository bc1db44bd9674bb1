import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ControlServer } from '../../../../src/control/control-server.js';
import { ok } from '../../../../src/control/route.js';
import { ControlClient } from '../../../../src/tools/control/control-client.js';
import { eventually } from '../../../support/eventually.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

/** A client, and the connections of its primary, which does nothing with them by itself. */
async function connected() {
  const path = join(temporaryDirectory(), 'a.sock');
  const primary = createServer({ pauseOnConnect: true });
  await once(primary.listen(path), 'listening');
  onTestFinished(() => void primary.close());
  const came = once(primary, 'connection') as Promise<[Socket]>;
  return { client: new ControlClient({ name: 'shop', pid: undefined, path }), came };
}

function serving() {
  const reload = vi.fn(({ body }: { readonly body: unknown }) => ok({ body }));
  return { server: new ControlServer({ 'POST /v1/reload': reload }, () => {}), reload };
}

it('asks for a change as soon as the primary has taken its head', async () => {
  const { client, came } = await connected();
  const { server } = serving();
  const changed = client.post('/v1/reload', { by: 1 });
  server.take((await came)[0]);
  expect(await changed).toEqual({ body: { by: 1 } });
});

it('says of a primary that takes no head that it does not answer, which begins nothing later', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { client, came } = await connected();
  const { server, reload } = serving();
  let told = '';
  client.post('/v1/reload').catch((error: Error) => (told = error.message));
  const [socket] = await came;
  await vi.advanceTimersByTimeAsync(1_000);
  vi.useRealTimers();
  await eventually('it is said', () => told.includes('did not answer within 1000 ms'));
  server.take(socket);
  await new Promise((resolve) => void socket.once('close', resolve));
  await setImmediate(); // by then the server knows that the body does not come
  expect(reload).not.toHaveBeenCalled();
});
