import { Server } from 'socket.io';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OnceAMinute } from '../../../../src/contract/errors/index.js';
import { HubAdapter, type Namespace } from '../../../../src/hub/socket.io/hub-adapter.js';
import { PrivateIds } from '../../../../src/hub/socket.io/private-ids.js';
import { SessionStore } from '../../../../src/hub/socket.io/session-store.js';
import { HubChannels } from '../../../../src/hub/client/hub-channels.js';
import { HubClient } from '../../../../src/hub/client/hub-client.js';
import { dialInProcess } from '../../../../src/hub/client/in-process.js';

interface Packet {
  readonly type: number;
  readonly data: unknown[] & { readonly sid: string; readonly pid: string };
}

interface Socket {
  readonly id: string;
  readonly recovered: boolean;
  data: unknown;
  join(room: string): unknown;
  _onclose(reason: string): void;
}

const hub = new HubClient(dialInProcess);
const warn = vi.fn();
let warnings: OnceAMinute;
const warnOnce = (text: string): void => warnings.say(text, text);
const channels = new HubChannels(hub, warn);
const ids = new PrivateIds(undefined);
let tests = 0;

beforeEach(() => {
  warn.mockClear();
  warnings = new OnceAMinute(warn);
});
afterEach(() => void vi.restoreAllMocks());

/** Workers, as far as Socket.IO sees. */
function workers(
  connectionStateRecovery: object = {},
  count = 2,
  channel = `test ${(tests += 1)}`,
) {
  return Array.from({ length: count }, () => {
    const server = new Server({ connectionStateRecovery });
    const sessions = new SessionStore(hub, channels, ids, 1024 * 1024, warnOnce);
    server.adapter(function adapter(nsp: Namespace) {
      return new HubAdapter(nsp, channels, sessions, channel, warnOnce);
    } as never);
    return server.of('/');
  });
}

/** A connection, without one: what it is sent, and how its end is noticed. */
function connect(nsp: ReturnType<Server['of']>, auth: object = {}, readyState = 'open') {
  const packets: Packet[] = [];
  const conn = { readyState, protocol: 4, close: () => client.socket?._onclose('forced close') };
  const client = {
    conn,
    id: 'c',
    request: { headers: {}, connection: {} },
    packets,
    socket: undefined as Socket | undefined,
    /** The events that the client has received, each with its offset. */
    heard: () => packets.flatMap(({ type, data }) => (type === 2 ? [data] : [])),
    /** The data that Socket.IO's client sends when it reconnects. */
    auth: () => {
      const pid = packets.find(({ type }) => type === 0)!.data.pid;
      return { pid, offset: client.heard().at(-1)!.at(-1) };
    },
    writeToEngine: ([text]: string[]) =>
      void packets.push({ type: Number(text![0]), data: JSON.parse(text!.slice(1)) }),
    _packet: (packet: Packet) => void packets.push(structuredClone(packet)),
    _remove: () => {},
  };
  const add = (nsp as unknown as { _add(...args: unknown[]): void })._add.bind(nsp);
  add(client, auth, (socket: Socket) => (client.socket = socket));
  return client;
}

type Client = ReturnType<typeof connect>;

async function connected(client: Client): Promise<Client> {
  await vi.waitFor(() => expect(client.socket).toBeDefined());
  return client;
}

/** A client with one event and its offset. */
async function firstOf(nsp: ReturnType<Server['of']>): Promise<Client> {
  const client = await connected(connect(nsp));
  nsp.emit('first');
  await vi.waitFor(() => expect(client.heard()).toHaveLength(1));
  return client;
}

it.each(['one worker', 'both workers'])(
  'a message nested too deeply is left out, and told: clients of %s',
  async (of) => {
    const [one, other] = workers();
    if (of === 'both workers') await connected(connect(other!));
    const client = await connected(connect(one!));
    const deep: unknown = JSON.parse('['.repeat(6_000) + ']'.repeat(6_000));
    one!.emit('deep', deep);
    one!.emit('deep', deep);
    one!.emit('next');
    await vi.waitFor(() => expect(client.heard()).toEqual([['next', expect.any(String)]]));
    expect(warn).toHaveBeenCalledWith(
      'Socket.IO could not send a message: RangeError: Maximum call stack size exceeded',
    );
  },
);

describe('a client who comes back', () => {
  it('has missed nothing, nor has it anything twice, to whichever worker it comes', async () => {
    const [one, other] = workers();
    const client = await firstOf(one!);
    client.socket!._onclose('transport close');
    one!.emit('second');
    const again = await connected(connect(other!, client.auth()));
    one!.emit('third');
    await vi.waitFor(() => expect(again.heard()).toHaveLength(2));
    expect(again.socket!.recovered).toBe(true);
    expect(again.heard()).toEqual([
      ['second', expect.any(String)],
      ['third', expect.any(String)],
    ]);
    // Else a client that is cut off before its CONNECT would hear what it has got once more.
    expect(again.packets[0]!.type).toBe(0);
  });

  it('gets what is said until a middleware lets it in, once and with one offset', async () => {
    const [one, other] = workers({ skipMiddlewares: false });
    const client = await firstOf(one!);
    client.socket!._onclose('transport close');
    const waiting: (() => void)[] = [];
    other!.use((_socket, next) => void waiting.push(next));
    const again = connect(other!, client.auth());
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    const witness = await firstOf(one!);
    other!.emit('own');
    await vi.waitFor(() => expect(witness.heard()).toHaveLength(2));
    waiting[0]!();
    await connected(again);
    await vi.waitFor(() => expect(again.heard()).toHaveLength(2));
    expect(again.heard()).toEqual([
      ['first', expect.any(String)],
      ['own', expect.any(String)],
    ]);
  });

  it('keeps its session where it leaves before it is let in', async () => {
    const [one, other] = workers();
    const client = await firstOf(one!);
    client.socket!._onclose('transport close');
    one!.emit('second');
    const removed = vi.spyOn(other!, '_remove' as never);
    connect(other!, client.auth(), 'closed'); // its worker drains, say
    await vi.waitFor(() => expect(removed).toHaveBeenCalled());
    const again = await connected(connect(one!, client.auth()));
    expect(again.socket!.recovered).toBe(true);
    await vi.waitFor(() => expect(again.heard()).toEqual([['second', expect.any(String)]]));
  });

  it.each(['another worker', 'its worker'])(
    'gets its session from %s, which takes it for connected',
    async (which) => {
      const [one, other] = workers();
      const client = await firstOf(one!);
      await firstOf(other!); // they know of each other
      const said = client.heard().length;
      const auth = client.auth();
      client.packets.length = 0; // the rest is lost
      one!.emit('second');
      await vi.waitFor(() => expect(client.heard()).toHaveLength(1));
      const again = await connected(connect(which === 'its worker' ? one! : other!, auth));
      expect(again.socket!.recovered).toBe(true);
      await vi.waitFor(() => expect(again.heard()).toEqual([['second', expect.any(String)]]));
      expect(said).toBeGreaterThan(0);
    },
  );

  it('gets its session once, however often it asks at the same time', async () => {
    const [one, other] = workers();
    const client = await firstOf(one!);
    client.socket!._onclose('transport close');
    const places = [one!, other!, one!, other!];
    const again = await Promise.all(places.map((nsp) => connected(connect(nsp, client.auth()))));
    expect(again.filter(({ socket }) => socket!.recovered)).toHaveLength(1);
  });

  it('gets no session of another namespace', async () => {
    const [other] = workers({}, 1, 'c x');
    const [one] = workers({}, 1, 'c');
    const client = await firstOf(other!);
    client.socket!._onclose('transport close');
    const { pid, offset } = client.auth();
    for (const made of [`x ${pid}`, pid]) {
      const again = await connected(connect(one!, { pid: made, offset }));
      expect(again.socket!.recovered).toBe(false);
    }
    const again = await connected(connect(other!, { pid, offset }));
    expect(again.socket!.recovered).toBe(true);
  });

  it('asks the hub beside 999 others at most: the next one begins anew', async () => {
    const ask = vi.spyOn(hub, 'askUntil').mockReturnValue(new Promise(() => {}));
    const store = new SessionStore(hub, channels, ids, 1024, warnOnce);
    const take = (n: number) => {
      const pid = ids.sign('c', String(n).padStart(20, 'a'));
      return store.take('c', 'uid', pid, '0.0', () => Promise.resolve());
    };
    for (let n = 0; n < 1_000; n += 1) void take(n);
    expect(await take(1_000)).toBeUndefined();
    expect(ask).toHaveBeenCalledTimes(1_000);
  });

  it('begins anew where nobody knows it', async () => {
    const [one, other] = workers();
    const client = await firstOf(one!);
    await firstOf(other!);
    const { pid, offset } = client.auth();
    client.socket!._onclose('client namespace disconnect'); // such a session is not kept
    const again = await connected(connect(other!, { pid, offset }));
    expect(again.socket!.recovered).toBe(false);
  });

  it.each([
    ['of another form', () => 'a'.repeat(20)],
    ['that is not signed', () => `${'a'.repeat(20)}.${'a'.repeat(22)}`],
    ['of another cluster', () => new PrivateIds(undefined).sign('test', 'a'.repeat(20))],
  ])('asks nobody with an id %s', async (_, make) => {
    const [one, other] = workers();
    const { offset } = (await firstOf(one!)).auth();
    await firstOf(other!);
    const [say, ask] = [vi.spyOn(channels, 'say'), vi.spyOn(hub, 'askUntil')];
    const again = await connected(connect(one!, { pid: make(), offset }));
    expect(again.socket!.recovered).toBe(false);
    expect([say.mock.calls, ask.mock.calls]).toEqual([[], []]);
  });
});

describe('the room of a socket', () => {
  it.each([
    ['stays', false],
    ['comes back to another worker', true],
  ])('has members of other workers, also where the socket %s', async (_, moves) => {
    const [one, other, third] = workers({}, 3);
    const client = await firstOf(one!);
    const guest = await firstOf(other!);
    const { id } = client.socket!;
    void guest.socket!.join(id);
    let own = one!;
    if (moves) {
      client.socket!._onclose('transport close');
      expect((await connected(connect(third!, client.auth()))).socket!.id).toBe(id);
      own = third!;
    }
    const before = guest.heard().length;
    await vi.waitFor(() => {
      own.to(id).emit('to the room');
      expect(
        guest
          .heard()
          .slice(before)
          .map(([name]) => name),
      ).toContain('to the room');
    });
  });

  it('is no news to others while it is its own', async () => {
    const [one, other] = workers();
    const [client, guest] = [await firstOf(one!), await firstOf(other!)];
    const say = vi.spyOn(channels, 'say');
    void guest.socket!.join('room-1');
    one!.to(client.socket!.id).emit('to itself');
    const heard = () => client.heard().map(([name]) => name);
    await vi.waitFor(() => expect(heard()).toContain('to itself'));
    expect(say.mock.calls.map(([from, , { to } = {}]) => from === to)).toEqual([true]);
  });
});

describe('data of a socket that is no JSON', () => {
  const circle: { self?: object } = {};
  circle.self = circle;
  const timer = setTimeout(() => {}, 60_000).unref(); // one that waits is in a list
  const kinds: [string, unknown][] = [
    ['a BigInt', 1n],
    ['a circle', circle],
    ['a timer', timer],
  ];

  it.each(kinds)('does no harm where its client leaves (%s)', async (_, value) => {
    const [one, other] = workers();
    const clients = [await firstOf(one!), await firstOf(one!)];
    for (const { socket } of clients) {
      socket!.data = { value };
      socket!._onclose('transport close');
    }
    const again = await connected(connect(other!, clients[0]!.auth()));
    expect(again.socket!.recovered).toBe(false);
    expect(warn).toHaveBeenCalledOnce();
    expect(warn.mock.calls[0]![0]).toMatch(/^socket\.data .* is not JSON/);
  });

  it.each(kinds)('is empty in other workers (%s)', async (_, value) => {
    const [one, other] = workers();
    const [client, good] = [await firstOf(one!), await firstOf(one!)];
    await firstOf(other!);
    client.socket!.data = { value };
    good.socket!.data = { name: 'good' };
    const sockets = await other!.fetchSockets();
    const data = new Map(sockets.map((each) => [each.id, each.data as unknown]));
    expect(data.get(client.socket!.id)).toEqual({});
    expect(data.get(good.socket!.id)).toEqual({ name: 'good' });
    expect(warn).toHaveBeenCalledOnce();
  });
});
