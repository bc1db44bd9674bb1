import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { dialSocket } from '../../../src/client/dial.js';
import { HeldLocks } from '../../../src/lock/held-locks.js';
import { HubClient } from '../../../src/client/hub-client.js';
import { FrameSocket } from '../../../src/wire/frame-socket.js';
import { MAX_BODY_BYTES } from '../../../src/wire/protocol.js';
import { listenForWorkers } from '../../../src/thread/thread.js';
import { eventually } from '../../../../../test/support/eventually.js';

let directory: string;
let path: string;
let over: AbortController;
const servers: { readonly server: Server; readonly close: () => void }[] = [];

beforeEach(() => {
  over = new AbortController();
  directory = mkdtempSync(join(tmpdir(), 'hub-'));
});
afterEach(() => {
  over.abort();
  for (const { close } of servers.splice(0)) close();
  rmSync(directory, { recursive: true });
});

/** A hub as its thread has it, which ends with all connections when it is closed. */
async function serve(restarted = false): Promise<() => void> {
  path = join(directory, restarted ? '2.sock' : '1.sock');
  const server = await listenForWorkers({ path, restarted });
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => sockets.add(socket));
  const close = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  servers.push({ server, close });
  return close;
}

async function connect(slot: number, warn = vi.fn()): Promise<HubClient> {
  const hub = new HubClient(dialSocket(async () => path, slot, warn, over.signal));
  expect(await hub.ready(5_000)).toBe(true);
  return hub;
}

const LOCK = (waitMs: number) => ({ op: 'lock', name: 'l', waitMs }) as const;

describe('the server of the hub', () => {
  it('tells a worker of another version what to do', async () => {
    await serve();
    const socket = createConnection(path);
    onTestFinished(() => void socket.destroy());
    const answers: unknown[] = [];
    const frames = new FrameSocket(
      socket,
      ({ header }) => answers.push(header),
      () => {},
      Infinity,
    );
    frames.send({ op: 'hello', id: 0, v: 99, slot: 0 });
    await eventually('an answer', () => answers.length > 0);
    expect(answers).toMatchObject([
      {
        t: 'refused',
        why: expect.stringMatching(
          /version 1, but the worker uses version 99; restart the cluster/,
        ),
      },
    ]);
  });

  it('frees a lock that is given back while much is being sent', async () => {
    await serve();
    const [busy, other] = [await connect(0), await connect(1)];
    const { header } = await busy.ask(LOCK(0), 5_000);
    if (header.t !== 'granted') throw new Error(`the lock was not granted: ${header.t}`);
    const body = Buffer.alloc(2 ** 23);
    const set = { op: 'set', cache: 'c', key: 'k', ttlMs: null, maxBytes: 2 ** 26 };
    const sets = Promise.allSettled(
      Array.from({ length: 4 }, () => busy.ask(set as never, 5_000, { body })),
    );
    busy.tell({ op: 'unlock', grant: header.grant });
    expect((await other.askPatiently(LOCK, 2_000))?.header.t).toBe('granted');
    await sets;
  });

  it('refuses a request that it does not understand, and serves the next', async () => {
    await serve();
    const hub = await connect(0);
    const tooLong = { op: 'get', cache: 'c', key: 'k'.repeat(100_000) } as const;
    await expect(hub.ask(tooLong, 5_000)).rejects.toMatchObject({ failure: 'refused' });
    const { header } = await hub.ask({ op: 'get', cache: 'c', key: 'k' }, 5_000);
    expect(header.t).toBe('miss');
  });

  it('answers a request that is too large with the limit, and goes on: locks stay where they are', async () => {
    await serve();
    const [hub, other] = [await connect(0), await connect(1)];
    expect((await hub.ask(LOCK(0), 5_000)).header.t).toBe('granted');
    const closed = vi.fn();
    hub.listen({ closed });
    const set = { op: 'set', cache: 'c', key: 'k', ttlMs: null, maxBytes: 2 ** 26 };
    await expect(
      hub.ask(set as never, 5_000, { body: Buffer.alloc(MAX_BODY_BYTES + 1) }),
    ).rejects.toMatchObject({
      failure: 'refused',
      message: expect.stringMatching(/^the (?:body|message) is \d+ bytes; the maximum is \d+$/),
    });
    expect((await other.ask(LOCK(0), 5_000)).header.t).toBe('taken');
    expect(closed).not.toHaveBeenCalled();
  });

  it('refuses an answer that is too large, and keeps the connection', async () => {
    await serve();
    const hub = await connect(0);
    const cached = { cache: 'c', ttlMs: null, maxBytes: 2 ** 27 } as const;
    for (let n = 0; n < 1_600; n += 1) {
      await hub.ask({ op: 'set', key: `${n}`.padEnd(16_000, 'k'), ...cached }, 5_000);
    }
    const keys = { op: 'keys', cache: 'c', prefix: '' } as const;
    await expect(hub.ask(keys, 5_000)).rejects.toMatchObject({
      failure: 'refused',
      message: expect.stringMatching(/^the answer is too large: the message is \d+ bytes/),
    });
    expect((await hub.ask({ ...keys, prefix: '1' }, 5_000)).header.t).toBe('keys');
  });

  it('that ends is found again, and those who held a lock have it before others', async () => {
    const end = await serve();
    const [one, two] = [await connect(0), await connect(1)];
    const lock = (await new HeldLocks(one).acquire({ name: 'l' }, 1_000))!;
    end();
    await eventually('the connections are lost', () => !one.open && !two.open);
    const at = performance.now();
    await serve(true);
    const early = await two.askPatiently((waitMs) => ({ op: 'lock', name: 'm', waitMs }), 5_000);
    expect(early?.header.t).toBe('granted');
    expect(performance.now() - at).toBeGreaterThan(1_800);
    expect(one.open).toBe(true);
    expect(lock.signal.aborted).toBe(false);
    expect(await new HeldLocks(two).acquire({ name: 'l' }, 50)).toBeUndefined();
  });
});
