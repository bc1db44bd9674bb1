import { afterEach, describe, expect, it } from 'vitest';
import { ONE_ADAPTER, OTHER_ADAPTER } from '../support/adapters.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import {
  began,
  cutBy,
  drains,
  NEVER_MS,
  NOTHING_CUT,
  ONLY_THE_ASKER,
  openNow,
} from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { Gates } from '../support/offload.js';
import { describeOnce } from '../support/once.js';
import { RawClient } from '../support/raw-client.js';

afterEach(stopAll);

/** A behaviour on an adapter. */
const on = (adapter: string, name = 'streams#announced') => ({
  ...behaviour(name),
  TEST_ADAPTER: adapter,
});

describe('the drain', () => {
  it('closes connections that are parked, or have never sent a byte, by FIN', async () => {
    const cluster = await ClusterProcess.start({
      options: { shutdown: { drainTimeoutMs: NEVER_MS } },
      env: on(ONE_ADAPTER),
    });
    const parked = await Promise.all(Array.from({ length: 8 }, () => RawClient.open(cluster.url)));
    for (const client of parked) client.get('/hello');
    await Promise.all(parked.map((client) => client.until(/Hello World!/)));
    parked.push(await RawClient.open(cluster.url), await RawClient.open(cluster.url));
    await eventually(
      'all of them accepted',
      () => openNow(cluster.url),
      ({ connections }) => connections >= parked.length,
    );

    cluster.kill('SIGTERM');

    expect(await Promise.all(parked.map((client) => client.end()))).toEqual(
      parked.map(() => 'fin'),
    );
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
  });

  it.each([OTHER_ADAPTER, 'node'])(
    'answers a request in flight with "Connection: close" and ends its connection (%s)',
    async (adapter) => {
      const gates = new Gates();
      const cluster = await ClusterProcess.start({
        options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
        env: { ...on(adapter), ...gates.env },
      });
      const client = await RawClient.open(cluster.url);
      client.get('/gate/held');
      await began(cluster, '/gate/held');

      cluster.kill('SIGTERM');

      await drains(cluster.workerPids[0]!);
      gates.open('held');
      expect(await client.end()).toBe('fin');
      expect(client.text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(client.text).toMatch(/^connection: close\r$/im);
      expect(client.text).toContain('"passed":"held"');
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
      expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
    },
  );

  it('answers every request that was pipelined before it began', async () => {
    const gates = new Gates();
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: { ...on(ONE_ADAPTER), ...gates.env },
    });
    const client = await RawClient.open(cluster.url);
    client.get('/gate/first', '/hello', '/wait/10', '/gate/last');
    await began(cluster, '/gate/last');

    cluster.kill('SIGTERM');

    await drains(cluster.workerPids[0]!);
    gates.open('first');
    await client.until(/"waitedMs":10/);
    gates.open('last');
    expect(await client.end()).toBe('fin');
    const answers = client.text.split(/(?=HTTP\/1\.1 )/);
    expect(answers.map((answer) => answer.split('\r\n')[0])).toEqual(
      Array.from({ length: 4 }, () => 'HTTP/1.1 200 OK'),
    );
    expect(answers.map((answer) => answer.slice(answer.indexOf('\r\n\r\n') + 4))).toEqual([
      '{"passed":"first"}',
      'Hello World!',
      expect.stringContaining('"waitedMs":10'),
      '{"passed":"last"}',
    ]);
    // Only the last may say so: a client ignores what follows such an answer.
    expect(answers.map((answer) => /^connection: close\r$/im.test(answer))).toEqual([
      false,
      false,
      false,
      true,
    ]);
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
  });

  it('closes the app after its last response: what the app closes is still there', async () => {
    const gates = new Gates();
    const cluster = await ClusterProcess.start({
      env: { ...on(OTHER_ADAPTER, 'streams#pool'), ...gates.env },
    });
    const answer = request(cluster.url, '/query/slow');
    await eventually(
      'the request in flight',
      () => openNow(cluster.url),
      ({ requests }) => requests > 1,
    );

    cluster.kill('SIGTERM');

    // The other one, which has nothing to wait for.
    await cluster.event('worker-stopped');
    gates.open('slow');
    const { outcome, body } = await answer;
    expect([outcome, JSON.parse(body)]).toEqual(['ok', { closed: false }]);
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.output.match(/^pool closed$/gm)).toHaveLength(2);
    expect(cluster.all('worker-stopped').map(({ problem }) => problem)).toEqual([null, null]);
  });

  it('turns readiness off while requests are still served, then stops to accept', async () => {
    const cluster = await ClusterProcess.start({
      options: { shutdown: { lameDuckMs: 5_000, drainTimeoutMs: NEVER_MS } },
      env: on(ONE_ADAPTER),
    });
    const parked = await RawClient.open(cluster.url);
    parked.get('/hello');
    await parked.until(/Hello World!/);
    // Holds the drain open, so that what comes after the lame duck can be looked at.
    const held = await RawClient.open(cluster.url);
    held.get('/wait/60000');
    await began(cluster, '/wait/60000');

    cluster.kill('SIGTERM');
    await cluster.until('two draining workers', () => cluster.all('worker-draining').length === 2);

    const ready = await eventually(
      'readiness off',
      () => request(cluster.url, '/health/ready'),
      ({ status }) => status === 503,
    );
    expect(JSON.parse(ready.body)).toMatchObject({ error: { cluster: { status: 'down' } } });
    expect((await request(cluster.url, '/health')).status).toBe(503);
    expect((await request(cluster.url, '/health/live')).status).toBe(200);
    expect(await request(cluster.url, '/hello')).toMatchObject({ outcome: 'ok' });
    parked.get('/whoami');
    await parked.until(/"slot":/);
    expect(parked.text).not.toMatch(/^connection: close\r$/im);

    expect(await parked.end()).toBe('fin');
    // One that waits to be accepted as the listener closes may be reset; none may hang.
    await eventually(
      'new connections refused',
      () => request(cluster.url, '/hello', { timeoutMs: 1_000 }),
      ({ outcome }) => outcome === 'refused',
    );
    expect(cluster.all('worker-stopped').length).toBeLessThan(2);

    held.destroy();
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
  });

  it('counts no connection that is gone, whoever closed it', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: on(OTHER_ADAPTER),
    });
    const open = () => RawClient.open(cluster.url);

    const closedByServer = await open();
    closedByServer.write('GET /hello HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n');
    expect(await closedByServer.end()).toBe('fin');
    const refused = await open();
    refused.write('this is not HTTP\r\n\r\n');
    await refused.end();
    const abortedRequest = await open();
    abortedRequest.get('/wait/60000', '/wait/60000', '/wait/60000');
    await began(cluster, '/wait/60000', 3);
    const abortedHead = await open();
    abortedHead.write('GET /hello HTTP/1.1\r\nHost:');
    const abortedBody = await open();
    abortedBody.write('POST /hello HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\nhalf');
    const silent = await open();
    const idle = await open();
    idle.get('/hello');
    await idle.until(/Hello World!/);
    const mine = [abortedRequest, abortedHead, abortedBody, silent, idle];
    // A POST that no route takes may be answered and closed by the server before its body came.
    const counted = await eventually(
      'the connections counted',
      () => openNow(cluster.url),
      ({ connections, requests }) => connections >= mine.length && requests >= 4,
    );
    expect(counted.requests).toBeLessThanOrEqual(5);

    for (const client of mine) client.destroy();

    await eventually(
      'none but the connection that asks',
      () => openNow(cluster.url),
      ({ connections, requests }) =>
        connections === ONLY_THE_ASKER.connections && requests === ONLY_THE_ASKER.requests,
    );
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.all('worker-stopped')).toHaveLength(1);
    expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
    expect(cluster.output).not.toContain('the drain destroyed');
  });

  it('cuts what is left at drainTimeoutMs, and counts it', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: 500 } },
      env: on(ONE_ADAPTER),
    });
    const endless = [request(cluster.url, '/wait/60000'), request(cluster.url, '/wait/60000')];
    await began(cluster, '/wait/60000', 2);
    const halfAHead = await RawClient.open(cluster.url);
    halfAHead.write('GET /hello HTTP/1.1\r\nHost:');
    await eventually(
      'three connections',
      () => openNow(cluster.url),
      ({ connections }) => connections === 4,
    );

    cluster.kill('SIGTERM');

    expect((await Promise.all(endless)).map(({ outcome }) => outcome)).toEqual(['reset', 'reset']);
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    const [stopped] = cluster.all('worker-stopped');
    expect(stopped).toMatchObject({ destroyedConnections: 3, abortedRequests: 2 });
    expect(stopped!.message).toContain('(cause=shutdown)');
    expect(stopped!.message).toContain('destroyed 3 connections with 2 requests');
    expect(stopped!.message).not.toContain('WebSocket');
  });
});

describeOnce('a shutdown hook', () => {
  // Nest 12 logs such an error and keeps it to itself; Nest 11 gives it to app.close().
  it('that rejects is told in the line of its worker, and by the exit code, on Nest 11', async () => {
    const cluster = await ClusterProcess.start({
      program: 'nest11',
      options: { workers: 1 },
      env: behaviour('crashes#hookRejects'),
    });

    cluster.kill('SIGTERM');

    const { code, signal } = await cluster.exited();
    expect(signal).toBeNull();
    expect(code).not.toBe(0);
    expect(cluster.output).toContain('the pool cannot be closed');
    const [stopped] = cluster.all('worker-stopped');
    expect(stopped!.level).toBe('error');
    expect(stopped!.problem).toContain('the pool cannot be closed');
    expect(cluster.survivors()).toEqual([]);
  });

  it('that hangs is waited for until killTimeoutMs, and told, also by the exit code', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: 500, killTimeoutMs: 500 } },
      env: behaviour('crashes#hookHangs'),
    });

    cluster.kill('SIGTERM');

    const { code, signal } = await cluster.exited();
    expect(signal).toBeNull();
    expect(code).not.toBe(0);
    const [stopped] = cluster.all('worker-stopped');
    expect(stopped).toMatchObject({ level: 'error' });
    expect(stopped!.problem).toMatch(/did not finish within \d+ ms/);
    expect(cluster.survivors()).toEqual([]);
  });
});
