import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ControlClient } from '../../../src/tools/control/control-client.js';
import { watched } from '../../../src/tools/control/view/watched.js';
import { ControlApi } from '../../../src/control/control-api.js';
import { ControlServer } from '../../../src/control/control-server.js';
import { ControlSocket } from '../../../src/control/control-socket.js';
import type { ControlledCluster } from '../../../src/control/controlled-cluster.js';
import { EventStream } from '../../../src/control/event-stream.js';
import { TokenBucket } from '../../../src/control/token-bucket.js';
import type { Routes } from '../../../src/control/route.js';
import { ClusterAddressError, ClusterRefusedError } from '../../../src/contract/errors/index.js';
import { EventListeners } from '../../../src/contract/events/index.js';
import { resolveOptions } from '../../../src/contract/options/check/resolve-options.js';
import type { WorkerSnapshot } from '../../../src/contract/snapshot/index.js';
import { eventually } from '../../support/eventually.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';
import { SNAPSHOT } from '../support/fake-relay.js';

/** Two slots, and of their workers only what the status reads. */
const WORKERS = [0, 1].map((slot) => ({ slot, restartsByCause: {} }) as WorkerSnapshot);

const DONE = { outcome: 'completed', slot: 0, reason: null } as const;
const RELOADED = { outcome: 'completed', generation: 1, reason: null } as const;

const JSON_TYPE = { 'Content-Type': 'application/json' };

interface Asked {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** An API over a real socket, of a cluster that does what a test says. */
async function serve(
  cluster: Partial<ControlledCluster> = {},
  {
    requestMs,
    bucket,
    more = {},
  }: { readonly requestMs?: number; readonly bucket?: TokenBucket; readonly more?: Routes } = {},
) {
  const events = new EventListeners(() => {});
  const warn = vi.fn();
  const fake = {
    reloading: false,
    snapshot: vi.fn(() => ({ ...SNAPSHOT, workers: WORKERS })),
    reload: vi.fn(async () => RELOADED),
    scale: vi.fn(async () => SNAPSHOT),
    restart: vi.fn(async () => DONE),
    stop: vi.fn(),
    inspections: { stack: vi.fn(), record: vi.fn(), snapshot: vi.fn() },
    ...cluster,
  };
  const options = resolveOptions({ workers: 2, log: { write: () => {} } }, {});
  const secret = { ...options, admin: { port: 1, host: 'h', token: 'SECRET' } };
  const api = new ControlApi({
    cluster: fake,
    events,
    name: 'shop',
    options: secret as never,
    startedAt: '2026-01-01T00:00:00.000Z',
  });
  const server = new ControlServer({ ...api.routes, ...more }, warn, requestMs, bucket);
  const path = join(temporaryDirectory(), 'a.sock');
  const clients = new Set<Socket>();
  const socket = await ControlSocket.open(path, (client) => {
    clients.add(client);
    server.take(client);
  });
  onTestFinished(() => {
    socket.remove();
    for (const client of clients) client.destroy();
  });
  const ask = async (target: string, { method = 'GET', headers, body = '' }: Asked = {}) => {
    const asked = request({
      socketPath: path,
      path: target,
      method,
      agent: false,
      headers: { Host: 'localhost', ...(method === 'POST' && JSON_TYPE), ...headers },
    });
    asked.end(body);
    const [response] = await once(asked, 'response');
    let text = '';
    for await (const chunk of response) text += chunk;
    const { statusCode, headers: received } = response;
    return { status: statusCode as number, headers: received, text, json: JSON.parse(text) };
  };
  const post = (target: string, body = '') => ask(target, { method: 'POST', body });
  return { path, api, events, fake, warn, ask, post };
}

/** A client of few words: what it received, once the server has closed the connection. */
async function exchange(path: string, ...sent: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect(path);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  socket.on('error', () => {}); // it is closed while it still sends
  for (const part of sent) socket.write(part);
  await new Promise((resolve) => void socket.once('close', resolve));
  return text;
}

/** Resolves once the first of the answer is there; the connection ends with the test. */
async function openStream(
  path: string,
  target = '/v1/events',
  begins = 'event: sample',
): Promise<void> {
  const socket = connect(path).setEncoding('utf8');
  onTestFinished(() => void socket.destroy());
  let text = '';
  socket.on('data', (chunk: string) => (text += chunk));
  socket.on('error', () => {}); // the test has ended
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await eventually('an answer', () => text.includes(begins));
}

const MUTATIONS = ['/v1/reload', '/v1/scale', '/v1/stop', '/v1/workers/0/restart'] as const;

describe('the status', () => {
  it('is what is documented, without anything that is not on its list', async () => {
    vi.stubEnv('DATABASE_URL', 'postgres://u:SECRET@db');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { ask } = await serve();
    const { status, text, json } = await ask('/v1/status');
    expect(status).toBe(200);
    expect(Object.keys(json)).toEqual([
      'name',
      'pid',
      'version',
      'node',
      'startedAt',
      'options',
      'cluster',
    ]);
    expect(json).toMatchObject({ name: 'shop', pid: process.pid, version: expect.any(String) });
    expect(json.cluster).toMatchObject({ status: 'down', desired: 2, workers: [{ slot: 0 }, {}] });
    expect(json.options).toMatchObject({ workers: 2, admin: { port: 1, host: 'h' } });
    expect(text).not.toContain('SECRET');
  });
});

describe('a change', () => {
  it('answers with its outcome', async () => {
    const { post, fake } = await serve();
    expect((await post('/v1/reload')).json).toEqual(RELOADED);
    expect((await post('/v1/scale', '{"workers":4}')).json).toEqual({
      from: 2,
      workers: 2,
      ready: 2,
    });
    expect((await post('/v1/workers/1/restart', '{}')).json).toEqual(DONE);
    expect(fake.scale).toHaveBeenCalledWith(4, 'control socket');
    expect(fake.restart).toHaveBeenCalledWith(1, 'control socket');
  });

  it('is refused while another one is under way, which is named; the end is not', async () => {
    let finish!: (result: typeof RELOADED) => void;
    const { post, fake, api } = await serve({
      reload: () => new Promise((resolve) => (finish = resolve)),
    });
    const first = post('/v1/reload');
    await eventually('a reload', () => finish !== undefined);
    for (const path of ['/v1/reload', '/v1/workers/0/restart']) {
      const { status, json } = await post(path);
      expect({ status, code: json.error.code }).toEqual({ status: 409, code: 'BUSY' });
      expect(json.error.message).toMatch(/^a reload is under way, for \d+ ms/);
    }
    const stopped = post('/v1/stop');
    await eventually('a stop', () => vi.mocked(fake.stop).mock.calls.length > 0);
    finish(RELOADED);
    expect((await first).json).toEqual(RELOADED);
    api.end(3);
    expect((await stopped).json).toEqual({ exitCode: 3 });
    expect(fake.scale).not.toHaveBeenCalled();
  });

  it('does not take the reload of somebody else for its own', async () => {
    const { post, fake } = await serve({ reloading: true });
    expect((await post('/v1/reload')).status).toBe(409);
    expect(fake.reload).not.toHaveBeenCalled();
  });

  it('says why it cannot be done', async () => {
    const taken = new ClusterAddressError('127.0.0.1:3001', {
      message: 'taken\u001b[2J\r\nX: y',
      code: 'EADDRINUSE',
    });
    const { post, warn } = await serve({
      scale: async () => Promise.reject(taken),
      reload: async () => Promise.reject(new Error('of the inside')),
    });
    const refused = await post('/v1/scale', '{"workers":4}');
    expect(refused.status).toBe(409);
    expect(refused.json.error.message).toContain('cannot listen on 127.0.0.1:3001');
    expect(refused.text).not.toContain('\u001b');
    expect(refused.text).not.toContain('\\u001b');
    const failed = await post('/v1/reload');
    expect([failed.status, failed.text]).toEqual([500, expect.not.stringContaining('inside')]);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('of the inside'));
    // The next one is not taken for a second.
    expect((await post('/v1/workers/1/restart')).status).toBe(200);
  });

  it.each([
    ['/v1/scale', ''],
    ['/v1/scale', '{}'],
    ['/v1/scale', '{"workers":0}'],
    ['/v1/scale', '{"workers":257}'],
    ['/v1/scale', '{"workers":"4"}'],
    ['/v1/scale', '{"workers":4,"more":1}'],
    ['/v1/scale', '{"__proto__":{"workers":4}}'],
    ['/v1/scale', '[4]'],
    ['/v1/scale', '{"workers":4'],
    ['/v1/reload', '{"__proto__":null}'],
    ['/v1/stop', '{"force":true}'],
    ['/v1/workers/0/restart', '"now"'],
  ])('is refused with a body that is not as expected: %s %s', async (path, body) => {
    const { post, fake } = await serve();
    const { status, json } = await post(path, body);
    expect([status, json.error.code]).toEqual([400, 'BAD_REQUEST']);
    for (const change of [fake.scale, fake.reload, fake.stop, fake.restart]) {
      expect(change).not.toHaveBeenCalled();
    }
  });
});

describe('a request', () => {
  it.each<[number, string, Asked]>([
    [421, 'a foreign host', { headers: { Host: 'evil.example' } }],
    [403, 'an origin', { headers: { Origin: 'http://localhost' } }],
    [403, 'another site', { headers: { 'Sec-Fetch-Site': 'cross-site' } }],
    [
      403,
      'an origin and an upgrade',
      {
        headers: { Origin: 'null', Connection: 'Upgrade', Upgrade: 'websocket' },
      },
    ],
  ])('is refused with %i on every route: %s', async (status, _what, asked) => {
    const { ask, fake } = await serve();
    for (const path of MUTATIONS) {
      expect((await ask(path, { method: 'POST', ...asked })).status).toBe(status);
    }
    for (const path of ['/v1/status', '/v1/events', '/v1/none']) {
      expect((await ask(path, asked)).status).toBe(status);
    }
    expect(fake.stop).not.toHaveBeenCalled();
  });

  it('is refused where nothing is, by another method, or by what a form can send', async () => {
    const { ask, post } = await serve();
    expect((await ask('/v1/none')).status).toBe(404);
    expect((await ask('/v1/__proto__')).status).toBe(404);
    expect((await ask('/v1/workers/0/constructor')).status).toBe(404);
    expect((await post('/v1/workers/2/restart')).json.error.message).toBe(
      'there is no slot 2: slots are 0, 1',
    );
    expect((await post('/v1/status')).status).toBe(405);
    for (const path of MUTATIONS) {
      expect((await ask(path)).status).toBe(405);
      const headers = { 'Content-Type': 'text/plain' };
      expect((await ask(path, { method: 'POST', headers })).status).toBe(415);
    }
  });

  it('is refused where it is too large, without being read', async () => {
    const { path, ask, fake } = await serve();
    const head = (length: string) =>
      `POST /v1/scale HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${length}\r\n\r\n`;
    const megabyte = Buffer.alloc(1024 * 1024, ' ');
    const announced = exchange(
      path,
      head('Content-Length: 104857600'),
      ...Array(100).fill(megabyte),
    );
    expect(await announced).toMatch(/^HTTP\/1\.1 413 /);
    const chunk = Buffer.concat([Buffer.from('100000\r\n'), megabyte, Buffer.from('\r\n')]);
    const chunked = exchange(path, head('Transfer-Encoding: chunked'), ...Array(100).fill(chunk));
    expect(await chunked).toMatch(/^HTTP\/1\.1 413 /);
    const long = { headers: { 'X-Long': 'x'.repeat(20_000) } };
    expect(await ask('/v1/status', long).catch(() => ({ status: 431 }))).toMatchObject({
      status: 431,
    });
    expect(fake.scale).not.toHaveBeenCalled();
  });

  it('is refused before its client sends the body: it would write to a closed connection', async () => {
    const { path } = await serve();
    const head = (target: string) =>
      `POST ${target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
      'Content-Length: 2\r\nExpect: 100-continue\r\n\r\n';
    expect(await exchange(path, head('/v1/none'))).toMatch(/^HTTP\/1\.1 404 /);
    expect(await exchange(path, head('/v1/reload'), '{}')).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /,
    );
  });

  it('is one for each connection, whatever else came with it', async () => {
    const { path, fake } = await serve();
    const status = 'GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const text = await exchange(path, status.repeat(1_000));
    expect(text.match(/"name":"shop"/g)).toHaveLength(1);
    expect(fake.snapshot).toHaveBeenCalledTimes(1);
  });

  it('cannot bring a head into the answer', async () => {
    const { path } = await serve();
    const text = await exchange(
      path,
      'GET /v1/a%0d%0aX-Evil:%201 HTTP/1.1\r\nHost: localhost\r\n\r\n',
    );
    expect(text).toMatch(/^HTTP\/1\.1 404 /);
    expect(text).not.toContain('X-Evil');
  });
});

describe('clients that are no good', () => {
  it('are many and idle: they are closed, and the next one is answered', async () => {
    const { path, ask, warn } = await serve({}, { requestMs: 300 });
    const idle = Array.from({ length: 1_000 }, () => connect(path).on('error', () => {}));
    const closed = Promise.all(
      idle.map((each) => new Promise((resolve) => void each.once('close', resolve))),
    );
    for (const each of idle) each.resume();
    await closed;
    await eventually(
      'an answer',
      async () => (await ask('/v1/status').catch(() => undefined))?.status === 200,
    );
    expect(warn).not.toHaveBeenCalled();
  });

  it.each([
    ['head', 'GET /v1/status HTTP/1.1\r\nHost: local'],
    [
      'body',
      'POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    ],
  ])('have a time for their %s', async (_part, beginning) => {
    const { path, fake, warn } = await serve({}, { requestMs: 200 });
    const socket = connect(path).on('error', () => {});
    socket.write(beginning);
    const slowly = setInterval(() => socket.write(' '), 50);
    await new Promise((resolve) => void socket.resume().once('close', resolve));
    clearInterval(slowly);
    expect(fake.reload).not.toHaveBeenCalled();
    expect(warn).not.toHaveBeenCalled();
  });

  it('are faster than is good: they are told so, and the cluster is stopped', async () => {
    const bucket = new TokenBucket(1, 2, () => 0);
    const { ask, post, fake } = await serve({}, { bucket });
    const status = async () => (await ask('/v1/status')).status;
    expect([await status(), await status(), await status()]).toEqual([200, 200, 429]);
    void post('/v1/stop').catch(() => {});
    await eventually('a stop', () => vi.mocked(fake.stop).mock.calls.length > 0);
  });

  it('hold every event stream there is: others are told so, and the cluster is still shown and stopped', async () => {
    const { path, ask, post, fake } = await serve();
    for (let i = 0; i < 24; i += 1) await openStream(path);
    const refused = await ask('/v1/events');
    expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '1' } });
    expect(refused.json.error.message).toMatch(/^24 event streams are open already/);
    expect((await ask('/v1/status')).status).toBe(200);
    void post('/v1/stop').catch(() => {});
    await eventually('a stop', () => vi.mocked(fake.stop).mock.calls.length > 0);
  });

  it('keep every request waiting for its answer: others are told so, and the cluster is stopped', async () => {
    const endless: Routes = {
      'GET /v1/workers/:slot/stack': () => ({
        status: 200,
        contentType: 'text/plain',
        stream: new Readable({ read: () => {} }),
      }),
    };
    const { path, ask, post, fake } = await serve({}, { more: endless });
    for (let i = 0; i < 32; i += 1) await openStream(path, '/v1/workers/0/stack', 'HTTP/1.1 200');
    const refused = await ask('/v1/status');
    expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '1' } });
    expect(refused.json.error.message).toMatch(/^32 requests are being answered already/);
    void post('/v1/stop').catch(() => {});
    await eventually('a stop', () => vi.mocked(fake.stop).mock.calls.length > 0);
  });

  it('say nothing, and are as many as may: the one that came first is told so and gives its place', async () => {
    const { path, ask } = await serve();
    const idle = Array.from({ length: 33 }, () => connect(path).setEncoding('utf8'));
    const [told] = await once(idle[0]!, 'data');
    expect(told).toMatch(/^HTTP\/1\.1 429 [^]*\r\nRetry-After: 1\r\n/);
    expect((await ask('/v1/status')).status).toBe(200);
    for (const each of idle) each.destroy();
  });

  it('leave in the middle of an answer, which ends', async () => {
    let gone: AbortSignal | undefined;
    const endless = new Readable({ read: () => {} });
    const { path } = await serve(
      {},
      {
        more: {
          'GET /v1/workers/:slot/stack': (call) => {
            gone = call.gone;
            return { status: 200, contentType: 'text/plain', stream: endless };
          },
        },
      },
    );
    const socket = connect(path);
    socket.write('GET /v1/workers/1/stack HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'data');
    socket.destroy();
    await eventually('the end', () => endless.destroyed && gone?.aborted === true);
  });
});

describe('the stream of events', () => {
  it('has a sample at once, and every event as a line', async () => {
    const { path, events } = await serve();
    const socket = connect(path).setEncoding('utf8');
    let text = '';
    socket.on('data', (chunk: string) => (text += chunk));
    socket.write('GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually('a sample', () => text.includes('event: sample\ndata: {"at":'));
    events.call('warning', { message: 'one\r\n\r\nevent: sample\ndata: {}\u001b[2J' });
    await eventually('an event', () => text.includes('event: log\n'));
    const [, data] = /event: log\ndata: (.*)\n\n/.exec(text)!;
    expect(JSON.parse(data!)).toMatchObject({
      name: 'warning',
      level: 'warn',
      text: 'one | event: sample | data: {}',
    });
    socket.destroy();
    await eventually('nobody listens', () => !events.names.includes('warning'));
  });

  it('tells who leads, and each end of a worker once', () => {
    const events = new EventListeners(() => {});
    const stream = new EventStream({ events, cluster: { snapshot: () => SNAPSHOT } as never });
    const reader = stream.open();
    const worker = { slot: 1, generation: 2, pid: 4_242 };
    events.call('leader', { worker });
    events.call('worker-exit', { worker, cause: 'reload', failed: false } as never);
    events.call('leader', {});
    const told = [...String(reader.read()).matchAll(/event: log\ndata: (.*)\n/g)];
    expect(told.map(([, data]) => JSON.parse(data!))).toMatchObject([
      { name: 'leader', level: 'info', text: 'worker=1 gen=2 pid=4242 leads', event: { worker } },
      { name: 'leader', level: 'info', text: 'no worker leads', event: {} },
    ]);
    reader.destroy();
  });

  it('drops who does not read, and keeps the others', () => {
    const events = new EventListeners(() => {});
    const stream = new EventStream({ events, cluster: { snapshot: () => SNAPSHOT } as never });
    const [slow, fast] = [stream.open(), stream.open()];
    for (let i = 0; i < 1_000; i += 1) {
      events.call('warning', { message: 'x'.repeat(1_000) });
      fast.read();
    }
    expect([slow.destroyed, fast.destroyed]).toEqual([true, false]);
    expect(slow.readableLength).toBeLessThanOrEqual(512 * 1024);
    fast.destroy();
  });
});

it('lets so many pass a second, and more after a pause', () => {
  let now = 0;
  const bucket = new TokenBucket(10, 3, () => now);
  const take = (times: number) => Array.from({ length: times }, () => bucket.take());
  expect(take(4)).toEqual([true, true, true, false]);
  now = 100;
  expect(take(2)).toEqual([true, false]);
  now = 60_000;
  expect(take(4)).toEqual([true, true, true, false]);
});

it('takes no heap snapshot while a reload is under way: both replace the worker', async () => {
  const snapshot = vi.fn();
  const inspections = { stack: vi.fn(), record: vi.fn(), snapshot };
  const { ask } = await serve({ reloading: true, inspections });
  const answer = await ask('/v1/workers/0/heap-snapshot', { method: 'POST' });
  expect(answer).toMatchObject({ status: 409 });
  expect(snapshot).not.toHaveBeenCalled();
});

it('refuses a change until the worker of a heap snapshot has been replaced', async () => {
  const inspections = { stack: vi.fn(), record: vi.fn(), snapshot: vi.fn() };
  let replaced!: () => void;
  const asked = new Promise<void>((begun) => {
    const left = new Promise<void>((resolve) => (replaced = resolve));
    inspections.snapshot.mockImplementation(async function* () {
      begun();
      await left;
      yield Buffer.from('{}');
    });
  });
  const { post, fake } = await serve({ inspections });
  const taken = post('/v1/workers/0/heap-snapshot');
  await asked;
  const [reload, restart] = [await post('/v1/reload'), await post('/v1/workers/1/restart')];
  replaced();

  expect(reload.text).toMatch(/a heap snapshot of worker 0 is under way, for \d+ ms/);
  expect([reload.status, restart.status]).toEqual([409, 409]);
  expect(await taken).toMatchObject({ status: 200, text: '{}' });
  expect(await post('/v1/reload')).toMatchObject({ status: 200 });
  expect(fake.reload).toHaveBeenCalledTimes(1);
});

it('a command asks for its change also where it cannot watch it: there are too many streams', async () => {
  const refused = new ClusterRefusedError('24 event streams are open already');
  const client = { events: () => Promise.reject(refused) } as unknown as ControlClient;
  expect(await watched(client, undefined, async () => 'stopped')).toBe('stopped');
  const silent = { events: () => Promise.reject(new Error('silent')) } as unknown as ControlClient;
  const ask = vi.fn();
  await expect(watched(silent, undefined, ask)).rejects.toThrow('silent');
  expect(ask).not.toHaveBeenCalled();
});
