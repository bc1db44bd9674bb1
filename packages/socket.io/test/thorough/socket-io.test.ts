import { mkdtempSync, readdirSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { io, type Socket } from 'socket.io-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { behaviour, behaviour11 } from '../../../../test/support/behaviour.js';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { request } from '../../../../test/support/http-client.js';
import { selfSignedCertificate } from '../../../../test/support/certificate.js';

// By hand, for the figures of many clients: SOCKET_IO_WORKERS=8 SOCKET_IO_CLIENTS=1000
// SOCKET_IO_PACE_MS=100, with `-t 'connect and upgrade|moves all clients'`.
/** A reload of more takes a busy machine the better part of a minute. */
const WORKERS = Number(process.env.SOCKET_IO_WORKERS ?? 3);
const CLIENTS = Number(process.env.SOCKET_IO_CLIENTS ?? 24);

/** From one broadcast to the next. */
const PACE_MS = Number(process.env.SOCKET_IO_PACE_MS ?? 20);

/** A client, its numbers, and why it could not connect. */
interface Client {
  readonly socket: Socket;
  readonly ticks: number[];
  readonly failures: string[];
  pid: number;
}

let cluster: ClusterProcess;
let clients: Client[] = [];
const directory = mkdtempSync(join(tmpdir(), 'sio-'));

/** All tests share one cluster: a test that breaks it leaves it working for the next test. */
beforeAll(async () => {
  cluster = await ClusterProcess.start({
    options: { workers: WORKERS, control: false },
    env: {
      ...behaviour('socket-io'),
      TEST_SOCKET_IO: JSON.stringify({
        connectionStateRecovery: {},
        cors: { origin: 'https://our.example' },
      }),
      TMPDIR: directory,
    },
  });
  clients = await clientsOfSeveral(CLIENTS, () => client());
});
afterAll(async () => {
  for (const { socket } of clients) socket.disconnect();
  await stopAll();
});

/** As it is by default: polling first, then the upgrade. */
function client(options: object = {}, namespace = '', { url }: { url: string } = cluster): Client {
  const socket = io(`${url}${namespace}`, { forceNew: true, ...options });
  const made: Client = { socket, ticks: [], failures: [], pid: 0 };
  socket.on('connect_error', ({ message }) => made.failures.push(message));
  socket.on('hello', (pid: number) => (made.pid = pid));
  socket.on('tick', (number: number) => made.ticks.push(number));
  socket.on('question', (value: unknown, answer: (value: unknown) => void) => answer(value));
  return made;
}

/**
 * Connects `count` clients, and `count` more as long as one worker has them all. The kernel gives
 * each connection to any worker that is free.
 */
async function clientsOfSeveral(count: number, connect: () => Client): Promise<Client[]> {
  const made: Client[] = [];
  do {
    made.push(...Array.from({ length: count }, connect));
    await eventually('they are connected', () => made.every(({ pid }) => pid > 0));
  } while (new Set(made.map(({ pid }) => pid)).size < 2);
  return made;
}

const all = <T>(what: string, read: (each: Client) => T, holds: (value: T) => boolean) =>
  eventually(
    what,
    () => clients.map(read),
    (values) => values.every(holds),
  );

/** In another worker than the first client. */
const elsewhere = () => clients.find(({ pid }) => pid !== clients[0]!.pid)!;

const poll = (path: string, options: Parameters<typeof request>[2] = {}) =>
  request(cluster.url, `/socket.io/?EIO=4&transport=polling${path}`, options);

describe('clients by default', () => {
  it('connect and upgrade, whichever worker has their requests', async () => {
    const upgraded = ({ socket }: Client) => socket.io.engine.transport.name;
    await all('all are connected', ({ pid }) => pid, Boolean);
    await all('all have upgraded', upgraded, (name) => name === 'websocket');
    expect(clients.flatMap(({ failures }) => failures)).toEqual([]);
  });

  it('poll on, each request on a connection of its own', async () => {
    const polling = client({ transports: ['polling'] });
    clients.push(polling);
    await eventually('it is connected', () => polling.pid);
    for (let asked = 0; asked < 10; asked += 1) {
      expect(await polling.socket.emitWithAck('who')).toBe(polling.pid);
    }
    expect(polling.failures).toEqual([]);
  });
});

describe('a broadcast', () => {
  it('reaches the room in all workers with its bytes', async () => {
    const members = [clients[0]!, elsewhere()];
    const heard = members.map(
      ({ socket }) => new Promise((resolve) => socket.once('bytes', (...args) => resolve(args))),
    );
    for (const { socket } of clients) socket.once('others', () => expect.unreachable());
    for (const { socket } of members) await socket.emitWithAck('join', 'room');
    const payload = [{ deep: Buffer.from([0, 255]), at: new Date(0) }, '\0x', null];
    clients[2]!.socket.emit('to', 'room', 'bytes', ...payload);
    const expected = [{ deep: Buffer.from([0, 255]), at: new Date(0).toISOString() }, '\0x', null];
    for (const args of await Promise.all(heard)) expect(args).toEqual(expected);
  });

  it('reaches a namespace whose name a client has chosen in all workers', async () => {
    const other = client({}, '/dynamic-8');
    const members = await clientsOfSeveral(6, () => client({}, '/dynamic-7'));
    await eventually('the other is connected', () => other.pid);
    members[0]!.socket.emit('all', 'tick', 1);
    await eventually('all have it', () => members.every(({ ticks }) => ticks.length === 1));
    expect(other.ticks).toEqual([]);
    for (const { socket } of [other, ...members]) socket.disconnect();
  });

  it('is acknowledged by all clients', async () => {
    const answers = await clients[0]!.socket.emitWithAck('ask all', Buffer.from([7]));
    expect(answers).toEqual(clients.map(() => '07'));
  });
});

it('sockets and servers of all workers are known', async () => {
  const sockets = (await clients[0]!.socket.emitWithAck('sockets')) as {
    id: string;
    pid: number;
  }[];
  const seen = new Map(sockets.map(({ id, pid }) => [id, pid]));
  expect(seen).toEqual(new Map(clients.map(({ socket, pid }) => [socket.id, pid])));
  const answers = await clients[0]!.socket.emitWithAck('servers', Buffer.from([1]));
  expect(answers).toHaveLength(WORKERS - 1);
  expect(answers[0]).toEqual({ pid: expect.any(Number), value: Buffer.from([1]) });
});

it('no warning says that Socket.IO does not fit', () => {
  expect(cluster.lines.filter(({ event }) => event === 'warning')).toEqual([]);
});

describe('a session id that a client has made up', () => {
  const unknown = '{"code":1,"message":"Session ID unknown"}';
  const tail = 'a'.repeat(20);
  it.each([
    ['of another slot', `00000000.${WORKERS - 1}.${tail}`],
    ['with a path', `00000000.0/../../x.${tail}`],
    ['of an object', '__proto__'],
  ])('%s gets the 400 that has a client begin anew', async (_name, sid) => {
    const answer = await poll(`&sid=${sid}`);
    expect([answer.status, answer.body]).toEqual([400, unknown]);
  });

  it('is refused for an upgrade, too', async () => {
    const { hostname, port } = new URL(cluster.url);
    const socket = net.connect(Number(port), hostname);
    socket.write(
      `GET /socket.io/?EIO=4&transport=websocket&sid=00000000.${WORKERS - 1}.${tail} HTTP/1.1\r\nHost: a\r\n` +
        'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
        `Sec-WebSocket-Key: ${'a'.repeat(22)}==\r\n\r\n`,
    );
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    expect(text).toMatch(/^HTTP\/1.1 400 /);
  });
});

it('a client whose data is no JSON is listed, and leaves', async () => {
  const odd = await clientsOfSeveral(2, () => client());
  for (const { socket } of odd) await socket.emitWithAck('data');
  const ids = odd.map(({ socket }) => socket.id);
  const listed = async () => {
    const sockets = (await clients[0]!.socket.emitWithAck('sockets')) as { id: string }[];
    return sockets.filter(({ id }) => ids.includes(id)).length;
  };
  expect(await listed()).toBe(odd.length);
  for (const { socket } of odd) {
    socket.io.engine.close(); // not by a packet: then it might come back
    socket.disconnect();
  }
  await eventually('they are gone', listed, (count) => count === 0);
  expect(cluster.all('worker-died')).toEqual([]);
});

/** Numbers to all clients, from workers that answer. */
async function tick(from: number, to: number): Promise<void> {
  for (let number = from; number < to; number += 1) {
    const { outcome } = await request(cluster.url, `/tick/${number}`);
    expect(outcome).toBe('ok');
    await delay(PACE_MS);
  }
}

const numbers = (count: number) => Array.from({ length: count }, (_, number) => number);

describe('a reload', () => {
  it('moves all clients, who begin anew and hear nothing twice', async () => {
    await all('all are connected', ({ pid }) => pid, Boolean);
    const before = clients.map(({ socket, pid }) => ({ id: socket.id, pid }));
    cluster.child.kill('SIGHUP');
    const over = cluster.event('reload-ended').then(() => true);
    let sent = 0;
    while (!(await Promise.race([over, tick(sent, (sent += 1))]))) continue;
    const old = new Set(before.map(({ pid }) => pid));
    await all(
      'all are connected to new workers',
      ({ socket, pid }) => socket.connected && !old.has(pid),
      Boolean,
    );
    await tick(sent, sent + 5);
    const last = numbers(5).map((number) => sent + number);
    await all(
      'all have what came after it',
      ({ ticks }) => last.every((number) => ticks.includes(number)),
      Boolean,
    );
    for (const { ticks } of clients) expect(new Set(ticks).size).toBe(ticks.length);
    expect(clients.filter(({ socket }, index) => socket.id === before[index]!.id)).toEqual([]);
    expect(clients.filter(({ socket }) => socket.recovered)).toEqual([]);
    const stopped = cluster.lines.filter(({ event }) => event === 'worker-stopped');
    expect(
      stopped.map(({ destroyedWebSockets, abortedRequests }) => [
        destroyedWebSockets,
        abortedRequests,
      ]),
    ).toEqual(stopped.map(() => [0, 0]));
  });

  it('leaves no socket of a worker that is gone', () => {
    const own = readdirSync(directory).find((name) => name.startsWith('nestjs-cluster-thread-'));
    const sockets = readdirSync(join(directory, own!));
    expect(sockets).toHaveLength(WORKERS + 1);
  });
});

it('clients on TLS connect and upgrade where the primary hands out connections', async () => {
  const secure = await ClusterProcess.start({
    options: { workers: 2, control: false, balancing: 'round-robin' },
    env: { ...behaviour('socket-io'), TEST_TLS: JSON.stringify(selfSignedCertificate()) },
  });
  const url = secure.url.replace('http:', 'https:');
  const members = await clientsOfSeveral(6, () =>
    client({ rejectUnauthorized: false }, '', { url }),
  );
  await eventually('all have upgraded', () =>
    members.every(({ socket }) => socket.io.engine.transport.name === 'websocket'),
  );
  expect(members.flatMap(({ failures }) => failures)).toEqual([]);
  for (const { socket } of members) socket.disconnect();
});

it('on Nest 11 clients of two workers upgrade, and hear each broadcast', async () => {
  const nest11 = await ClusterProcess.start({
    program: 'nest11',
    options: { workers: 2, control: false },
    env: behaviour11('socket-io'),
  });
  const members = await clientsOfSeveral(6, () => client({}, '', nest11));
  await eventually('all have upgraded', () =>
    members.every(({ socket }) => socket.io.engine.transport.name === 'websocket'),
  );
  members[0]!.socket.emit('all', 'tick', 1);
  await eventually('all have it', () => members.every(({ ticks }) => ticks.length === 1));
  expect(members.flatMap(({ failures }) => failures)).toEqual([]);
  for (const { socket } of members) socket.disconnect();
});

describe('a worker that is killed', () => {
  it('leaves its clients to the others, who answer for all that are there', async () => {
    const { pid } = clients[0]!;
    process.kill(pid, 'SIGKILL');
    await eventually(
      'its clients are connected to others',
      () => clients.filter(({ socket, pid: at }) => !socket.connected || at === pid).length,
      (count) => count === 0,
    );
    await cluster.until('it is replaced', () => cluster.all('worker-ready').length > 2 * WORKERS);
    const sockets = (await clients[0]!.socket.emitWithAck('sockets')) as { id: string }[];
    expect(new Set(sockets.map(({ id }) => id))).toEqual(
      new Set(clients.map(({ socket }) => socket.id)),
    );
  });
});
