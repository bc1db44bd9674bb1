import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { getJson, request } from '../support/http-client.js';
import { PATIENCE_MS } from '../support/patience.js';
import { residentBytesOf } from '../support/processes.js';
import { RawClient } from '../support/raw-client.js';

/** Express with the packages that are installed, as its users have it. */
const SAMPLES = [
  { adapter: 'express', program: 'installedSample' },
  { adapter: 'fastify', program: 'sample' },
] as const;

const PAGE = readFileSync(join(import.meta.dirname, '../../sample-app/public/index.html'), 'utf8');

/** As its users start it: PORT, HOST and ADAPTER come from the environment. */
function environment(adapter: string, env: Record<string, string> = {}): Record<string, string> {
  return {
    SAMPLE_OPTIONS: JSON.stringify({ workers: 2, shutdown: { drainTimeoutMs: 1_000 } }),
    PORT: '0',
    HOST: '127.0.0.1',
    ADAPTER: adapter,
    ...env,
  };
}

function postJson(cluster: ClusterProcess, path: string, body: string) {
  const headers = { 'content-type': 'application/json' };
  return request(cluster.url, path, { method: 'POST', headers, body });
}

/**
 * Asks until a thread was there in time: they are nicer than the rest, and on a busy machine
 * the first calls have waited too long for one.
 */
// A test asserts on what it gets: `unknown` would only make it cast.
// oxlint-disable-next-line typescript/no-explicit-any
function computed<T = any>(cluster: ClusterProcess, path: string) {
  return eventually(
    `an answer of ${path}`,
    () => getJson<T>(cluster.url, path),
    ({ status }) => status !== 503,
  );
}

describe.each(SAMPLES)('the sample app on $adapter', ({ adapter, program }) => {
  let cluster: ClusterProcess;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({ program, env: environment(adapter) });
  });

  afterAll(stopAll);

  it('serves every route as the articles describe them', async () => {
    expect(cluster.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);

    expect(await request(cluster.url, '/')).toMatchObject({ outcome: 'ok', body: PAGE });
    expect((await request(cluster.url, '/fib/46')).status).toBe(400);

    expect((await request(cluster.url, '/hello')).body).toBe('Hello World!');
    // oxlint-disable-next-line typescript/no-explicit-any
    const ask = <T = any>(path: string) => computed<T>(cluster, path);
    for (const prefix of ['', '/offload']) {
      expect((await ask(`${prefix}/fib/20`)).body).toEqual({ n: 20, fibonacci: 6_765 });
      expect((await ask(`${prefix}/test`)).body).toEqual({ n: 35, fibonacci: 9_227_465 });
      const { sum } = (await ask<{ sum: number }>(`${prefix}/slow`)).body;
      // 100 000 squares of numbers between 0 and 1: a third each on average.
      expect(sum).toBeGreaterThan(32_000);
      expect(sum).toBeLessThan(35_000);
    }
    expect((await ask('/offload/primes/100')).body).toEqual({ n: 100, primes: 25 });
    expect((await getJson(cluster.url, '/wait/20')).body).toEqual({ waitedMs: 20 });

    const body = '{"text":"ä","list":[1,null,{"deep":true}]}';
    const echo = await postJson(cluster, '/echo', body);
    expect(echo.status).toBe(200);
    expect(JSON.parse(echo.body)).toEqual(JSON.parse(body));
  });

  it.each(['identity', 'gzip, deflate, br'])(
    'sends events as they happen to a client that accepts %s',
    async (encoding) => {
      const response = await fetch(`${cluster.url}/events`, {
        headers: { accept: 'text/event-stream', 'accept-encoding': encoding },
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);

      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      while (text.split('data: ').length <= 2) text += (await reader.read()).value ?? '';
      await reader.cancel();

      const events = [...text.matchAll(/^data: (.*)$/gm)].map(
        ([, data]) => JSON.parse(data!) as { slot: number; counter: number },
      );
      expect(events.slice(0, 2)).toEqual([
        { slot: events[0]!.slot, counter: 0 },
        { slot: events[0]!.slot, counter: 1 },
      ]);
      expect([0, 1]).toContain(events[0]!.slot);
    },
  );

  it('has no faults, and nothing that is shared, unless they are asked for', async () => {
    for (const path of [
      '/shared/ticks',
      '/shared/limited',
      '/socket.io/?EIO=4&transport=polling',
      '/faults/crash',
      '/faults/exit/1',
      '/faults/spin',
      '/faults/block/1',
      '/faults/leak/1',
    ]) {
      expect([path, (await request(cluster.url, path)).status]).toEqual([path, 404]);
    }
    expect(cluster.all('worker-died')).toEqual([]);
  });

  it('has a primary of at most 60 MB after a scrape', async () => {
    for (let i = 0; i < 3; i++) {
      expect((await request(cluster.url, '/metrics')).outcome).toBe('ok');
      expect((await request(cluster.url, '/health')).outcome).toBe('ok');
    }

    expect(residentBytesOf(cluster.pid)).toBeLessThanOrEqual(60 * 2 ** 20);
  });

  // The last: it ends what the others ask.
  it('ends at SIGTERM with an event stream open, within its drain timeout', async () => {
    const listener = await RawClient.open(cluster.url);
    listener.get('/events');
    await listener.until(/"counter":0/);

    cluster.kill('SIGTERM');

    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(await listener.end()).toBe('fin');
    expect(cluster.survivors()).toEqual([]);
  });
});

describe('the faults of the sample app', () => {
  afterEach(stopAll);

  it('are there with SAMPLE_FAULTS=1, and workers that failed are there again', async () => {
    // Longer than a busy machine holds a worker up that is well.
    const options = { workers: 1, hangTimeoutMs: 3_500 };
    const cluster = await ClusterProcess.start({
      program: 'sample',
      options: { workers: 1 },
      env: environment('fastify', { SAMPLE_FAULTS: '1', SAMPLE_OPTIONS: JSON.stringify(options) }),
    });
    const restarted = (times: number) =>
      cluster.until(`${times} restarts`, () => cluster.all('worker-ready').length > times);

    expect((await getJson(cluster.url, '/faults/block/5')).body).toEqual({ blockedMs: 5 });
    expect((await getJson(cluster.url, '/faults/leak/2')).body).toEqual({ leakedMb: 2 });

    void request(cluster.url, '/faults/crash');
    await restarted(1);
    void request(cluster.url, '/faults/exit/7');
    await restarted(2);
    const hung = request(cluster.url, '/faults/spin');
    await restarted(3);

    expect((await hung).outcome).toBe('reset');
    const died = cluster.all('worker-died');
    expect(died.map(({ cause }) => cause)).toEqual(['crash', 'crash', 'hang']);
    expect(died[0]!.message).toContain('sample crash');
    expect(died[1]!.message).toContain('code 7');
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
  });

  it('end the start, and say why', async () => {
    const env = environment('express', { SAMPLE_FAIL_BOOT: '1' });
    const cluster = new ClusterProcess({ program: 'sample', env });

    expect(await cluster.exited()).toEqual({ code: 70, signal: null });
    expect(cluster.all('worker-died')[0]!.message).toContain('SAMPLE_FAIL_BOOT');
    expect(cluster.all('failed')).toHaveLength(1);
    expect(cluster.survivors()).toEqual([]);
  });
});
