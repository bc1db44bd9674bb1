import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { cutBy, NEVER_MS, NOTHING_CUT } from '../support/drain.js';
import { RawClient } from '../support/raw-client.js';
import { ended } from '../support/replacements.js';

afterEach(stopAll);

const BODY = '{"hello":"world"}';
const HEAD = 'POST /hello HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n';

/** Clients on kept connections, each of which has had an answer. */
async function idleClients(url: string, count: number): Promise<RawClient[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => RawClient.open(url)));
  for (const client of clients) client.get('/whoami');
  await Promise.all(clients.map((client) => client.until(/"generation":0/)));
  return clients;
}

describe('an idle connection', () => {
  it.each(
    ['express', 'fastify', 'node'].flatMap((adapter) => [
      { adapter, workers: 1 },
      { adapter, workers: 2 },
    ]),
  )(
    'stays open in a reload, and its next request is served: $adapter, $workers workers',
    async ({ adapter, workers }) => {
      const cluster = await ClusterProcess.start({
        options: { workers, shutdown: { drainTimeoutMs: NEVER_MS } },
        env: { TEST_ADAPTER: adapter },
      });
      const used = await idleClients(cluster.url, 500);
      const unused = await Promise.all([1, 2, 3].map(() => RawClient.open(cluster.url)));
      const clients = [...used, ...unused];

      cluster.kill('SIGHUP');
      await ended(cluster, 1);

      for (const client of clients) client.get('/whoami');
      await Promise.all(clients.map((client) => client.until(/"generation":1/)));
      expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
      expect(cluster.all('warning')).toEqual([]);
    },
  );

  it('that sends a POST in parts is served by the worker that has its first part', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
    });
    const [client] = await idleClients(cluster.url, 1);
    client!.write(`${HEAD}Content-Length: ${BODY.length}\r\n\r\n{`);

    cluster.kill('SIGHUP');
    await cluster.event('worker-draining');
    client!.write(BODY.slice(1));

    await client!.until(/HTTP\/1\.1 404/);
    await ended(cluster, 1);
    expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
  });

  it('moves to another worker when its own is scaled away', async () => {
    const cluster = await ClusterProcess.start({ options: { workers: 2 } });
    const clients = await idleClients(cluster.url, 50);

    cluster.kill('SIGTTOU');
    await cluster.event('worker-stopped');

    for (const client of clients) client.get('/whoami');
    await Promise.all(clients.map((client) => client.until(/generation[^]*generation/)));
  });
});
