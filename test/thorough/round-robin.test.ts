import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { getJson } from '../support/http-client.js';
import { listenersOf } from '../support/kernel-sockets.js';
import { CONTROLLED, PrimaryControl } from '../support/primary-control.js';
import { ascending } from '../support/replacements.js';
import { Traffic } from '../support/traffic.js';

const balancing = 'round-robin';

afterEach(stopAll);

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
});

describe('a drain', () => {
  it('of one worker, a reload and scaling lose nothing', async () => {
    const cluster = await ClusterProcess.start({
      options: { balancing },
      env: { ...CONTROLLED, ...behaviour('builds#works') },
    });
    const control = await PrimaryControl.of(cluster);
    const traffic = new Traffic(cluster.url, 2);
    await traffic.serves(100);

    const leaver = cluster.workerPids[0]!;
    process.kill(leaver, 'SIGTERM');
    await replaced(cluster, leaver);
    await traffic.serves(100);
    expect(traffic.lost).toEqual([]);
    expect(await control.reload()).toMatchObject({ outcome: 'completed', generation: 1 });
    await traffic.serves(100);
    expect(traffic.lost).toEqual([]);
    for (const workers of [3, 1]) {
      expect(await control.scale(workers)).toMatchObject({ desired: workers, ready: workers });
      await traffic.serves(100);
      expect(traffic.lost).toEqual([]);
    }
    expect(await traffic.stop()).toEqual([]);
    for (const stopped of cluster.all('worker-stopped')) {
      expect(stopped).toMatchObject({ problem: null, abortedRequests: 0 });
    }
    expect(cluster.all('worker-died')).toEqual([]);
  });
});
