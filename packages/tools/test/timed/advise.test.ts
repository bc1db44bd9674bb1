import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';
import { SteadyLoad } from '../../../../test/support/steady-load.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import type { Advice } from '../../src/advise/report.js';
import { tools } from '../support/tools.js';

const LIGHT = Array.from({ length: 15 }, (_, n) => `/light/${n}`);
const BLOCKING = ['recursion', 'regexp', 'json', 'crypto', 'library'].map(
  (name) => `/blocking/${name}`,
);

afterEach(stopAll);

/** Advises a cluster of two workers, while clients ask for light routes and for routes that block. */
async function advised(seconds: number, meanwhile: (cluster: ClusterProcess) => Promise<void>) {
  const path = join(temporaryDirectory(), 'control.sock');
  const cluster = await ClusterProcess.start({
    options: { control: { path } },
    env: { BEHAVE: join(import.meta.dirname, '../fixtures/twenty-routes.mjs') },
  });
  const loads = [new SteadyLoad(cluster.url, LIGHT, 60), new SteadyLoad(cluster.url, BLOCKING, 3)];
  try {
    const advising = tools(['advise', '--cluster', path, '-s', String(seconds), '--json']);
    await meanwhile(cluster);
    const { code, stdout, stderr } = await advising;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout) as Advice;
  } finally {
    await Promise.all(loads.map((load) => load.stop()));
  }
}

it('names the five functions that block among 20 routes, under mixed load', async () => {
  const advice = await advised(8, async () => {});

  const found = advice.functions.map(({ name, kind }) => `${name} ${kind}`);
  expect(found.toSorted()).toEqual([
    'crypto crypto',
    'fibonacci code',
    'json json',
    'library code',
    'regexp regexp',
  ]);
  expect(advice.waitP99WithoutMs).toBeLessThan(advice.waitP99Ms / 2);
  expect([advice.workers, advice.lost, advice.nothing]).toEqual([2, [], null]);
});

it('reports a worker that dies, and advises from the others', async () => {
  const advice = await advised(15, async (cluster) => {
    await new Promise((resolve) => setTimeout(resolve, 2_000)); // the profiles have begun
    process.kill(cluster.workerPids[0]!, 'SIGKILL');
  });

  expect(advice.lost).toEqual([expect.stringMatching(/^worker=0: .*the worker/)]);
  expect(advice.workers).toBe(1);
  expect(advice.functions.map(({ name }) => name)).toContain('regexp');
});
