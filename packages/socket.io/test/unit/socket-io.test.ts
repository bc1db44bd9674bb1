import type { EventEmitter } from 'node:events';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import timers from 'node:timers/promises';
import { Server } from 'socket.io';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { shareSessions } from '../../../../src/hub/socket.io/cluster-sessions.js';
import type { Engine, EngineClient } from '../../../../src/hub/socket.io/engine.interface.js';
import { decodeJson, encodeJson } from '../../../../src/hub/client/json-payload.js';
import { askToReconnect } from '../../../../src/hub/socket.io/cluster-sessions.js';

describe('what adapters tell each other', () => {
  const copied = (value: unknown) => decodeJson(encodeJson(value));

  it('keeps bytes, and is JSON beside them as for a client', () => {
    const bytes = Buffer.from([0, 1, 255]);
    const value = {
      deep: [bytes, new Uint8Array([7]), new Uint8Array([8]).buffer],
      at: new Date(0),
      own: { toJSON: () => ({ inner: bytes }) },
    };
    expect(copied(value)).toEqual({
      deep: [bytes, Buffer.from([7]), Buffer.from([8])],
      at: '1970-01-01T00:00:00.000Z',
      own: { inner: bytes },
    });
  });

  it.each(['\u0000', '\u00000', '\u0000\u0000', '\u0000x', '{"_placeholder":true}'])(
    'takes the string %j of a client for no bytes',
    (text) => {
      const value = { text, placeholder: { _placeholder: true, num: 0 }, bytes: Buffer.from([1]) };
      expect(copied(value)).toEqual(value);
      expect(copied({ text })).toEqual({ text });
    },
  );

  it('keeps no view of what it was read from', () => {
    const encoded = encodeJson([Buffer.from([1])]);
    const [bytes] = decodeJson(encoded) as [Buffer];
    encoded.fill(0);
    expect(bytes).toEqual(Buffer.from([1]));
  });
});

describe('a client that polls', () => {
  async function connect() {
    const http = createServer();
    const io = new Server(http);
    onTestFinished(() => io.close());
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    const { port } = http.address() as AddressInfo;
    const poll = async (query = ''): Promise<string> => {
      const url = `http://127.0.0.1:${port}/socket.io/?EIO=4&transport=polling${query}`;
      return (await fetch(url)).text();
    };
    const { sid } = JSON.parse((await poll()).slice(1)) as { sid: string };
    const { clients } = io.engine as unknown as {
      clients: Record<
        string,
        EngineClient & Pick<EventEmitter, 'once'> & { send(text: string): void }
      >;
    };
    const [client] = Object.values(clients);
    const closed = new Promise<string>((resolve) => client!.once('close', resolve));
    return { client: client!, closed, poll: () => poll(`&sid=${sid}`) };
  }

  it.each([0, 1])(
    'and does so no more holds up no drain, with %d packets for it',
    async (count) => {
      const { client, closed } = await connect();
      if (count > 0) client.send('x');
      askToReconnect(client, 50);
      expect(await closed).toBe('forced close');
    },
    5_000,
  );

  it('is told of the end, with what there was for it', async () => {
    const { client, closed, poll } = await connect();
    client.send('x');
    askToReconnect(client, 2_000);
    expect(await poll()).toBe('4x');
    expect(await poll()).toMatch(/1$/);
    expect(await closed).toBe('forced close');
  });
});

/** A link whose hub is found by `find`, and an engine: both are what sessions are shared with. */
function sharing(find: () => Promise<{ path: string; token: string }>) {
  const warn = vi.fn();
  const identity = { slot: 0, pid: 1, generation: 0 };
  const link = { findHub: () => find, identity, warn, onDrain: () => {} };
  const engine = { prepare() {}, handleRequest() {}, handleUpgrade() {} } as unknown as Engine;
  return { link, engine, warn };
}

it('a reason for which no session can be shared is told once, and it is tried again', async () => {
  const reasons = ['no hub', 'no hub', 'no room'];
  const find = vi.fn(async () => {
    throw new Error(reasons.shift() ?? 'no room');
  });
  vi.spyOn(timers, 'setTimeout').mockImplementation((_ms, value) =>
    reasons.length > 0 ? Promise.resolve(value!) : new Promise(() => {}),
  );
  syncBuiltinESMExports();
  const { link, engine, warn } = sharing(find);
  shareSessions(engine, link, { ready: () => Promise.resolve(true) });
  await vi.waitFor(() => expect(find).toHaveBeenCalledTimes(3));
  await vi.waitFor(() => expect(warn).toHaveBeenCalledTimes(2));
  expect(warn.mock.calls.flat()).toEqual([
    'requests cannot be passed on to the worker of their session: no hub',
    'requests cannot be passed on to the worker of their session: no room',
  ]);
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

it('a client gets its session id once this worker hears the others', async () => {
  const path = join(tmpdir(), `${process.pid}.hub`);
  const { link, engine } = sharing(() => Promise.resolve({ path, token: '' }));
  let open = (_is: boolean): void => {};
  const ready = () => new Promise<boolean>((resolve) => (open = resolve));
  shareSessions(engine, link, { ready });
  const given = vi.fn();
  void Promise.resolve(engine.generateId({} as never)).then(given);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(given).not.toHaveBeenCalled();
  open(true);
  await vi.waitFor(() => expect(given).toHaveBeenCalledWith(expect.stringMatching(/^0-/)));
});

it('a client gets its session id at once where there can be no hub', async () => {
  const { link, engine } = sharing(() => Promise.reject(new Error('no hub')));
  shareSessions(engine, link, { ready: () => Promise.resolve(false) });
  const late = new Promise((resolve) => setTimeout(resolve, 1_000, 'late'));
  const given = await Promise.race([engine.generateId({} as never), late]);
  expect(given).toMatch(/^0-/);
});
