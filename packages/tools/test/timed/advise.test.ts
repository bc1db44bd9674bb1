import { join } from 'node:path';
import { afterEach, expect, it, onTestFinished } from 'vitest';
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

it('names the five functions that block among 20 routes, under mixed load', async () => {
  const path = join(temporaryDirectory(), 'control.sock');
  const cluster = await ClusterProcess.start({
    options: { control: { path } },
    env: { BEHAVE: join(import.meta.dirname, '../fixtures/twenty-routes.mjs') },
  });
  const loads = [new SteadyLoad(cluster.url, LIGHT, 60), new SteadyLoad(cluster.url, BLOCKING, 3)];
  onTestFinished(async () => void (await Promise.all(loads.map((load) => load.stop()))));

  const { code, stdout, stderr } = await tools(['advise', '--cluster', path, '-s', '8', '--json']);

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const advice = JSON.parse(stdout) as Advice;
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
