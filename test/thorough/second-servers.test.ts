import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { Burst, SERVED, SERVED_BEFORE } from '../support/burst.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { cutBy, NEVER_MS, NOTHING_CUT, openNow } from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { request } from '../support/http-client.js';
import { Gates } from '../support/offload.js';
import { RawClient } from '../support/raw-client.js';

afterEach(stopAll);

const EXITED_WELL = { code: 0, signal: null };

async function start() {
  const gates = new Gates();
  gates.open('now');
  const first = await freePorts(2);
  const ports = [first, first + 1];
  const cluster = await ClusterProcess.start({
    options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
    env: { ...behaviour('second-servers'), ...gates.env, SECOND_PORTS: JSON.stringify(ports) },
  });
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const ask = async (name: string) => {
    const clients = await Promise.all(urls.map((url) => RawClient.open(url)));
    for (const client of clients) client.get(`/${name}`);
    await cluster.until(
      'both requests',
      () => cluster.output.split(`began /${name}\n`).length > clients.length,
    );
    return clients;
  };
  return { cluster, gates, ports, urls, ask };
}

describe('further servers of an app', () => {
  it('are counted, and drained as its own', async () => {
    const { cluster, gates, urls, ask } = await start();
    const busy = await ask('held');
    const parked = await Promise.all(urls.map((url) => RawClient.open(url)));
    for (const client of parked) client.get('/now');
    await Promise.all(parked.map((client) => client.until(/second/)));
    await eventually(
      'all of them counted',
      () => openNow(cluster.url),
      ({ connections, requests }) => connections >= 4 && requests >= 2,
    );

    cluster.kill('SIGTERM');

    expect(await Promise.all(parked.map((client) => client.end()))).toEqual(['fin', 'fin']);
    for (const url of urls) {
      await eventually(
        'new connections refused',
        () => request(url, '/now', { timeoutMs: 1_000 }),
        ({ outcome }) => outcome === 'refused',
      );
    }
    gates.open('held');
    expect(await Promise.all(busy.map((client) => client.end()))).toEqual(['fin', 'fin']);
    for (const { text } of busy) expect(text).toMatch(/^connection: close\r$[^]*second/im);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
    expect(cluster.output).toContain('closed\n'); // by the app's own hook
  });

  it('serve what had connected when a shutdown began', async () => {
    const { cluster, ports } = await start();
    const burst = new Burst(
      ports.map((port) => ({ host: '127.0.0.1', port })),
      { each: 50, path: '/now' },
    );
    await burst.connected;

    cluster.kill('SIGTERM');

    const { [SERVED]: closing = 0, [SERVED_BEFORE]: before = 0, ...lost } = await burst.outcomes();
    expect(lost).toEqual({});
    expect(closing + before).toBe(100);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
  });
});
