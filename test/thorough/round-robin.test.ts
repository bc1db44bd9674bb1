import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { getJson } from '../support/http-client.js';
import { acceptedBy, listenersOf } from '../support/kernel-sockets.js';
import { freeze } from '../support/killed-worker.js';
import { openDescriptorsOf } from '../support/processes.js';
import { RawClient } from '../support/raw-client.js';

const balancing = 'round-robin';

afterEach(stopAll);

const ascending = (a: number, b: number): number => a - b;

const portOf = ({ url }: ClusterProcess): number => Number(new URL(url).port);

/** Opens `count` connections, one after the other. Gives the pid that answers on each of them. */
async function answeredBy({ url }: ClusterProcess, count: number): Promise<number[]> {
  const pids: number[] = [];
  for (let i = 0; i < count; i++) {
    pids.push((await getJson<{ pid: number }>(url, '/whoami')).body.pid);
  }
  return pids;
}

/** Resolves once there are two workers, none of which is `before`. */
function replaced(cluster: ClusterProcess, ...before: number[]): Promise<unknown> {
  return cluster.until(
    'replacements',
    () =>
      cluster.workerPids.length === 2 && !cluster.workerPids.some((pid) => before.includes(pid)),
  );
}

describe('connections', () => {
  it('go to the workers in turn: 40 of them are 20 for each of two', async () => {
    const cluster = await ClusterProcess.start({ options: { balancing } });

    const pids = await answeredBy(cluster, 40);

    const [first, second] = pids as [number, number];
    expect([first, second].toSorted(ascending)).toEqual(cluster.workerPids.toSorted(ascending));
    expect(pids).toEqual(pids.map((_, index) => (index % 2 === 0 ? first : second)));
    expect(cluster.all('listening')).toMatchObject([{ balancing, ports: [] }]);
    // It is the primary that accepts.
    expect(cluster.workerPids.flatMap((pid) => listenersOf(pid))).toEqual([]);
    expect(listenersOf(cluster.pid)).toMatchObject([{ localPort: portOf(cluster) }]);
  });

  it(
    'that a killed worker was sent and had not taken go to another, each time, and leave no descriptor',
    { timeout: 120_000 },
    async () => {
      const cluster = await ClusterProcess.start({
        options: { balancing, hangTimeoutMs: 60_000 },
      });
      const port = portOf(cluster);
      const before = openDescriptorsOf(cluster.pid);
      for (let repetition = 0; repetition < 4; repetition++) {
        const victim = cluster.workerPids[repetition % 2]!;
        const other = cluster.workerPids.find((pid) => pid !== victim)!;
        await freeze(victim);
        const clients = [await RawClient.open(cluster.url), await RawClient.open(cluster.url)];
        for (const client of clients) client.get('/whoami');
        // One each: the other worker answers its own, and the primary still has what it sent.
        await eventually('a connection that is sent and not taken', () => {
          return (
            clients.filter(({ text }) => text !== '').length === 1 &&
            acceptedBy(cluster.pid, [port]).size === 1
          );
        });
        expect(acceptedBy(victim, [port])).toEqual(new Set());

        process.kill(victim, 'SIGKILL');

        const answer = new RegExp(`200 OK[^]*"pid":${other}\\b`);
        await Promise.all(clients.map((client) => client.until(answer)));
        for (const client of clients) client.destroy();
        await replaced(cluster, victim);
        await eventually(
          `as many descriptors as before: ${before}`,
          () => openDescriptorsOf(cluster.pid),
          (now) => now <= before, // one of the start may have been closed since
        );
      }
      expect(cluster.all('warning')).toEqual([]);
      // Nobody dead is given anything.
      const pids = await answeredBy(cluster, 10);
      expect(new Set(pids)).toEqual(new Set(cluster.workerPids));
    },
  );
});
