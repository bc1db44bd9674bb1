import https from 'node:https';
import { join } from 'node:path';
import tls from 'node:tls';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { ONE_ADAPTER } from '../support/adapters.js';
import { behaviour } from '../support/behaviour.js';
import { selfSignedCertificate } from '../support/certificate.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { cutBy, drains, NEVER_MS, NOTHING_CUT } from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import type { HealthBody } from '../support/health.js';
import { Http2Client } from '../support/http2-client.js';
import { Gates } from '../support/offload.js';
import { itOnce } from '../support/once.js';
import { RawClient } from '../support/raw-client.js';

afterEach(stopAll);

const program = join(import.meta.dirname, '../fixtures/app.mjs');
const certificate = selfSignedCertificate();

type TestServer = 'https' | 'https-fastify' | 'http2' | 'http2-tls';

/** One server of each kind on {@link ONE_ADAPTER}, and the other of HTTP/2. */
const [ONE_HTTPS, ONE_HTTP2, OTHER_HTTP2] = (
  ONE_ADAPTER === 'express'
    ? ['https', 'http2-tls', 'http2']
    : ['https-fastify', 'http2', 'http2-tls']
) as [TestServer, TestServer, TestServer];

const EXITED_WELL = { code: 0, signal: null };

/** One worker, so that what is counted is all there is. */
function start(
  server: TestServer,
  { drainTimeoutMs = NEVER_MS, env = {} }: { drainTimeoutMs?: number } & StartOptions = {},
): Promise<ClusterProcess> {
  return ClusterProcess.start({
    program,
    options: { workers: 1, shutdown: { drainTimeoutMs } },
    env: { TEST_SERVER: server, TEST_TLS: JSON.stringify(certificate), ...env },
  });
}

function secure(url: string): string {
  return url.replace(/^http:/, 'https:');
}

function expectNoCut(cluster: ClusterProcess): void {
  expect(cluster.all('worker-stopped')).toMatchObject([{ problem: null }]);
  expect(cluster.all('worker-died')).toEqual([]);
  expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
}

function waiting(cluster: ClusterProcess, what: number | string, times = 1): Promise<void> {
  return cluster.until(
    `${times} × waiting ${what}`,
    () => cluster.output.split(`waiting ${what}\n`).length > times,
  );
}

/** An agent with one TLS connection that it wants to keep. */
function keepAliveTls(): https.Agent {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  onTestFinished(() => agent.destroy());
  return agent;
}

interface SecureAnswer {
  readonly status: number | undefined;
  readonly connection: string | undefined;
  readonly body: string;
}

/** Rejects where the connection fails. */
function getSecurely(url: string, path: string, agent = keepAliveTls()): Promise<SecureAnswer> {
  return new Promise((resolve, reject) => {
    https
      .get(`${secure(url)}${path}`, { agent }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode, connection: response.headers.connection, body });
        });
      })
      .on('error', reject);
  });
}

/** A TLS connection on which nothing is said after the handshake. Resolves when it is made. */
async function openSilentTls(url: string): Promise<{ ended: Promise<void> }> {
  const { hostname, port } = new URL(url);
  const socket = tls.connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {}).resume();
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await new Promise<void>((resolve) => socket.once('secureConnect', () => resolve()));
  return { ended };
}

describe('the drain of HTTPS', () => {
  it('lets requests finish, and closes what is idle or silent, even before its handshake', async () => {
    const gates = new Gates();
    const cluster = await start(ONE_HTTPS, { env: gates.env });
    const { url } = cluster;
    const parked = keepAliveTls();
    expect((await getSecurely(url, '/hello', parked)).body).toBe('Hello World!');
    const parkedEnd = new Promise<void>((resolve) => {
      for (const socket of Object.values(parked.freeSockets).flatMap((each) => each ?? [])) {
        socket.once('close', () => resolve());
      }
    });
    const beforeHandshake = await RawClient.open(url);
    const afterHandshake = await openSilentTls(url);
    const held = getSecurely(url, '/gate/held');
    await waiting(cluster, 'held');
    // Three of them, the silent one, and the one that asks.
    await eventually(
      'all of them counted',
      async () => {
        const { details } = JSON.parse((await getSecurely(url, '/health')).body) as HealthBody;
        return details.cluster.workers[0]!;
      },
      ({ openConnections, requestsInFlight }) => openConnections! >= 5 && requestsInFlight === 2,
    );

    cluster.kill('SIGTERM');

    await Promise.all([beforeHandshake.end(), afterHandshake.ended, parkedEnd]);
    gates.open('held');
    const { status, connection, body } = await held;
    expect([status, connection]).toEqual([200, 'close']);
    expect(body).toBe('{"passed":"held"}');
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });
});

describe('the drain of HTTP/2', () => {
  const open = ({ url }: ClusterProcess, server: TestServer) =>
    Http2Client.open(server === 'http2' ? url : secure(url));

  it('finishes streams in flight, says GOAWAY, and closes idle sessions', async () => {
    const gates = new Gates();
    const cluster = await start(ONE_HTTP2, { env: gates.env });
    const idle = await open(cluster, ONE_HTTP2);
    expect((await idle.get('/hello')).body).toBe('Hello World!');
    const unused = await open(cluster, ONE_HTTP2);
    const silent = await RawClient.open(cluster.url);
    const busy = await open(cluster, ONE_HTTP2);
    const held = [busy.get('/gate/one'), busy.get('/gate/other')];
    await waiting(cluster, 'other');

    cluster.kill('SIGTERM');

    await Promise.all([idle.closed, unused.closed, silent.end()]);
    expect(await Promise.all([idle, unused, busy].map(({ goaway }) => goaway))).toEqual([0, 0, 0]);
    gates.open('one', 'other');
    expect(await Promise.all(held)).toEqual([
      { status: 200, body: '{"passed":"one"}', complete: true },
      { status: 200, body: '{"passed":"other"}', complete: true },
    ]);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });

  itOnce('ends event streams with their bodies complete', async () => {
    const cluster = await start(ONE_HTTP2, { env: behaviour('streams#events') });
    const client = await open(cluster, ONE_HTTP2);
    const stream = client.get('/sse');
    await eventually('events', () => client.text.split('data: ').length > 3);

    cluster.kill('SIGTERM');

    expect(await stream).toMatchObject({ status: 200, complete: true });
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });

  it('cuts streams at the deadline, so that it shows, and counts them', async () => {
    const cluster = await start(OTHER_HTTP2, {
      drainTimeoutMs: 1_000,
      env: behaviour('streams#measured'),
    });
    const busy = await open(cluster, OTHER_HTTP2);
    const held = [busy.get('/endless/1'), busy.get('/endless/2'), busy.get('/wait/60000')];
    await waiting(cluster, 60_000);
    await eventually('two begun bodies', () => busy.text === 'begun\nbegun\n');

    cluster.kill('SIGTERM');

    expect(await Promise.all(held)).toEqual([
      { status: 200, body: 'begun\n', complete: false },
      { status: 200, body: 'begun\n', complete: false },
      { status: undefined, body: '', complete: false },
    ]);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expect(cutBy(cluster.all('worker-stopped'))).toEqual({
      connections: 1,
      requests: 3,
      webSockets: 0,
    });
  });
});

describe('a client of HTTP/1.1 on a server of HTTP/2', () => {
  it('is drained as on any other: its request finishes, its idle connection is closed', async () => {
    const gates = new Gates();
    const cluster = await start('http2-tls', { env: gates.env });
    const parked = keepAliveTls();
    expect((await getSecurely(cluster.url, '/hello', parked)).body).toBe('Hello World!');
    const held = getSecurely(cluster.url, '/gate/held');
    await waiting(cluster, 'held');

    cluster.kill('SIGTERM');

    await drains(cluster.workerPids[0]!);
    gates.open('held');
    expect(await held).toMatchObject({ status: 200, connection: 'close' });
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });
});
