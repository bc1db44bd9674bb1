import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ControlledCluster } from '../../../src/control/control-server.js';
import { ControlSocket } from '../../../src/control/control-socket.js';
import { ClusterAddressError, Refusal } from '../../../src/contract/errors/errors.js';
import { resolveOptions } from '../../../src/contract/options/resolve.js';
import type { WorkerSnapshot } from '../../../src/contract/snapshot/types.js';
import { eventually } from '../../support/eventually.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';
import { SNAPSHOT } from '../support/fake-relay.js';

/** Two slots, and of their workers only what the status reads. */
const WORKERS = [0, 1].map((slot) => ({ slot, restartsByCause: {} }) as WorkerSnapshot);

const DONE = { outcome: 'completed', slot: 0, reason: null } as const;
const RELOADED = { outcome: 'completed', generation: 1, reason: null } as const;

interface Asked {
  readonly method?: 'GET' | 'POST';
  readonly body?: string;
}

/** The control socket of a cluster that does what a test says. */
async function serve(cluster: Partial<ControlledCluster> = {}) {
  const warn = vi.fn();
  const fake = {
    reloading: false,
    snapshot: vi.fn(() => ({ ...SNAPSHOT, workers: WORKERS })),
    reload: vi.fn(async () => RELOADED),
    scale: vi.fn(async () => SNAPSHOT),
    restart: vi.fn(async () => DONE),
    stop: vi.fn(),
    inspections: { stack: vi.fn(), record: vi.fn() },
    ...cluster,
  };
  const path = join(temporaryDirectory(), 'a.sock');
  const options = resolveOptions({ workers: 2, name: 'shop', control: { path } }, {});
  const secret = { ...options, admin: { port: 1, host: 'h', token: 'SECRET' } };
  const socket = await ControlSocket.open(fake, secret as never, warn);
  onTestFinished(() => socket.end(0));
  const ask = async (target: string, { method = 'GET', body = '' }: Asked = {}) => {
    const asked = request({ socketPath: path, path: target, method, agent: false });
    asked.end(body);
    const [response] = await once(asked, 'response');
    let text = '';
    for await (const chunk of response) text += chunk;
    return { status: response.statusCode as number, text, json: JSON.parse(text) };
  };
  const post = (target: string, body = '') => ask(target, { method: 'POST', body });
  return { path, socket, fake, warn, ask, post };
}

const CHANGES = ['/v1/reload', '/v1/scale', '/v1/stop', '/v1/workers/0/restart'] as const;

it('the status is what is documented, without anything that is not on its list', async () => {
  vi.stubEnv('DATABASE_URL', 'postgres://u:SECRET@db');
  const { ask } = await serve();
  const { status, text, json } = await ask('/v1/status');
  expect(status).toBe(200);
  const keys = 'name pid version node startedAt options cluster primary';
  expect(Object.keys(json).join(' ')).toBe(keys);
  expect(json).toMatchObject({ name: 'shop', pid: process.pid, version: expect.any(String) });
  expect(json.cluster).toMatchObject({ status: 'down', desired: 2, workers: [{ slot: 0 }, {}] });
  expect(json.options).toMatchObject({ port: expect.any(Number), admin: { port: 1, host: 'h' } });
  expect(text).not.toContain('SECRET');
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

  it('is ended by a stop, which is answered at the end', async () => {
    let finish!: (result: typeof RELOADED) => void;
    const { post, fake, socket } = await serve({
      reload: () => new Promise((resolve) => (finish = resolve)),
    });
    const first = post('/v1/reload');
    await eventually('a reload', () => finish !== undefined);
    const stopped = post('/v1/stop');
    await eventually('a stop', () => vi.mocked(fake.stop).mock.calls.length > 0);
    finish(RELOADED);
    expect((await first).json).toEqual(RELOADED);
    const ended = socket.end(3);
    expect((await stopped).json).toEqual({ exitCode: 3 });
    await ended;
  });

  it('does not take the reload of somebody else for its own', async () => {
    const { post, fake } = await serve({ reloading: true });
    const { status, json } = await post('/v1/reload');
    expect([status, json.error.code]).toEqual([409, 'BUSY']);
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
  });

  it.each(['', '{}', '{"workers":0}', '{"workers":257}', '{"workers":"4"}', '[4]', '{"workers":4'])(
    'is refused with a body that is not as expected: %s',
    async (body) => {
      const { post, fake } = await serve();
      const { status, json } = await post('/v1/scale', body);
      expect([status, json.error.code]).toEqual([400, 'BAD_REQUEST']);
      expect(fake.scale).not.toHaveBeenCalled();
    },
  );
});

describe('a profile', () => {
  it('is answered with the path of its file', async () => {
    const record = vi.fn(async () => ({ file: '/tmp/a.cpuprofile', top: '' }));
    const { post } = await serve({ inspections: { stack: vi.fn(), record } });
    for (const path of ['cpu-profile', 'heap-profile?seconds=60']) {
      expect((await post(`/v1/workers/1/${path}`)).json).toEqual({ file: '/tmp/a.cpuprofile' });
    }
    expect(record.mock.calls).toEqual([
      [1, { kind: 'cpu-profile', seconds: 10 }],
      [1, { kind: 'heap-profile', seconds: 60 }],
    ]);
  });

  it('says why there is none', async () => {
    const record = () => Promise.reject(new Refusal(404, 'NO_WORKER', 'there is no worker'));
    const { post } = await serve({ inspections: { stack: vi.fn(), record } });
    const { status, json } = await post('/v1/workers/9/heap-profile');
    expect([status, json]).toEqual([
      404,
      { error: { code: 'NO_WORKER', message: 'there is no worker' } },
    ]);
  });

  it.each(['0', '61', '1.5', 'x', ''])('has no length of "%s" seconds', async (seconds) => {
    const { post, fake } = await serve();
    expect((await post(`/v1/workers/0/cpu-profile?seconds=${seconds}`)).status).toBe(400);
    expect(fake.inspections.record).not.toHaveBeenCalled();
  });
});

describe('a request', () => {
  it('is refused for a path or a method without a route', async () => {
    const { ask, post } = await serve();
    const { status, json } = await ask('/v1/none');
    expect([status, json.error.code]).toEqual([404, 'NOT_FOUND']);
    expect(json.error.message).toContain('POST /v1/workers/:slot/restart');
    for (const path of ['/v1/__proto__', '/v1/workers/0/constructor', '//', ...CHANGES]) {
      expect((await ask(path)).status).toBe(404);
    }
    expect((await post('/v1/status')).status).toBe(404);
  });

  it('is refused for a body that is too long', async () => {
    const { post, fake } = await serve();
    const { status, json } = await post('/v1/scale', ' '.repeat(64 * 1024 + 1));
    expect([status, json.error.code]).toEqual([413, 'BAD_REQUEST']);
    expect(fake.scale).not.toHaveBeenCalled();
  });

  it('is dropped without a warning if its client leaves within the body', async () => {
    const { path, warn, ask } = await serve();
    const client = connect(path);
    client.write('POST /v1/scale HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{', () =>
      client.destroy(),
    );
    await once(client, 'close');
    expect((await ask('/v1/status')).status).toBe(200);
    expect(warn).not.toHaveBeenCalled();
  });
});

it('has room for 64 clients, and for others when these have left', async () => {
  const { path, ask } = await serve();
  const idle = Array.from({ length: 64 }, () => connect(path));
  await Promise.all(idle.map((each) => once(each, 'connect')));
  await expect(ask('/v1/status')).rejects.toThrow();
  for (const each of idle) each.destroy();
  const answer = async () => (await ask('/v1/status').catch(() => undefined))?.status === 200;
  await eventually('an answer', answer);
});
