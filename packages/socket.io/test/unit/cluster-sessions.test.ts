import { existsSync, statSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { EventEmitter } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type HubClient, hubOf } from '@nestjs-cluster/shared/internal';
import { Server } from 'socket.io';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { askToReconnect, shareSessions } from '../../src/cluster-sessions.js';
import type { Engine, EngineClient } from '../../src/engine.interface.js';
import { SessionSockets } from '../../src/session-sockets.js';

describe('a session id', () => {
  const find = async () => join(temporaryDirectory(), '1.sock');
  async function socketsOf(slot: number) {
    const cluster = { identity: { slot, pid: 1, generation: 0 }, warn: vi.fn() };
    const own = { handleRequest: vi.fn(), handleUpgrade: vi.fn(), release: vi.fn() };
    const sockets = new SessionSockets(cluster as never, find, own);
    await sockets.open();
    return sockets;
  }

  it('leads to the socket of its worker, and in that worker nowhere', async () => {
    const [own, other] = [await socketsOf(12), await socketsOf(3)];
    const id = other.newSessionId();
    expect(id).toMatch(/^[\da-f]{8}\.3\.[\w-]{20}$/);
    expect(id).not.toBe(other.newSessionId());
    expect(own.pathOf(id)).toMatch(new RegExp(`/${id.slice(0, 10)}\\.sock$`));
    expect(other.pathOf(id)).toBeUndefined();
  });

  const tail = 'a'.repeat(20);
  it('of another form leads nowhere', async () => {
    const sockets = await socketsOf(0);
    for (const sid of [
      undefined,
      [`00000000.0.${tail}`],
      'a'.repeat(20),
      `../00000000.0.${tail}`,
      `00000000.0/x.${tail}`,
      `0000000g.0.${tail}`,
      `00000000.0.${tail}a`,
      `00000000.0.${tail}\n`,
      `00000000.00000.${tail}`,
      `00000000.-1.${tail}`,
      `00000000.${tail}`,
    ]) {
      expect(sockets.pathOf(sid), JSON.stringify(sid)).toBeUndefined();
    }
    expect(sockets.pathOf(`00000000.0.${tail}`)).toBeDefined();
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
});

describe('sessions that are shared', () => {
  let directory: string;
  beforeEach(() => {
    directory = temporaryDirectory();
  });
  const KEY = Symbol.for('nestjs-cluster.hub');
  const holder = globalThis as { [KEY]?: HubClient | undefined };
  afterEach(() => {
    holder[KEY] = undefined;
  });

  /** An engine that shares its sessions, with a cluster whose thread is found by `find`. */
  function sharing(find: () => Promise<string>, slot = 3) {
    const warn = vi.fn();
    const cluster = {
      identity: { slot, pid: 1, generation: 0 },
      thread: () => find,
      warn,
      onDrain: vi.fn(),
    };
    const handleRequest = vi.fn((_request: IncomingMessage, response: ServerResponse) => {
      response.end('here');
    });
    const engine = {
      prepare: (request: { _query?: object }) => (request._query = {}),
      handleRequest,
      handleUpgrade() {},
    } as unknown as Engine;
    shareSessions(engine, cluster as never);
    return { engine, warn, handleRequest };
  }

  const find = async () => join(directory, '1.sock');
  const pathOf = (id: string): string =>
    join(directory, `${id.split('.').slice(0, 2).join('.')}.sock`);

  it('have a socket that only this user can open', async () => {
    const { engine, warn, handleRequest } = sharing(find);
    const id = await engine.generateId({} as never);
    expect(id).toMatch(/^[\da-f]{8}\.3\./);
    expect(statSync(pathOf(id)).mode & 0o777).toBe(0o600);
    const answer = await new Promise<IncomingMessage>((resolve) => {
      get({ socketPath: pathOf(id), path: '/' }, resolve);
    });
    answer.resume();
    expect(handleRequest).toHaveBeenCalledOnce();
    expect(warn).not.toHaveBeenCalled();
  });

  it('begin once this worker hears the others', async () => {
    let open = (_isOpen: boolean): void => {};
    const ready = new Promise<boolean>((resolve) => (open = resolve));
    vi.spyOn(hubOf(), 'ready').mockReturnValue(ready);
    const { engine } = sharing(find);
    const given = vi.fn();
    void Promise.resolve(engine.generateId({} as never)).then(given);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(given).not.toHaveBeenCalled();
    open(true);
    await vi.waitFor(() => expect(given).toHaveBeenCalledWith(expect.stringMatching(/\.3\./)));
  });

  it('are tried again, with a reason in the log', async () => {
    const failing = vi.fn(find).mockRejectedValueOnce(new Error('no thread'));
    const { engine, warn } = sharing(failing);
    const id = await engine.generateId({} as never);
    expect(existsSync(pathOf(id))).toBe(true);
    expect(warn.mock.calls).toEqual([['requests cannot be relayed to their worker: no thread']]);
  });
});
