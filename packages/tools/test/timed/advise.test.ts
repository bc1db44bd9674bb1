import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { afterEach, expect, it } from 'vitest';
import type { Advice } from '../../src/tools/advise/report.js';
import { behaviour } from '../../../../test/support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../../../../test/support/cluster-process.js';
import { commandLine, printed } from '../../../../test/support/command-line.js';
import { eventually } from '../../../../test/support/eventually.js';
import { SteadyLoad } from '../../../../test/support/steady-load.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

const LIGHT = Array.from({ length: 15 }, (_, n) => `/light/${n}`);
const BLOCKING = ['recursion', 'regexp', 'json', 'crypto', 'library'].map(
  (name) => `/blocking/${name}`,
);

afterEach(stopAll);

async function start({ env = behaviour('twenty-routes'), ...options }: StartOptions = {}) {
  const socket = join(temporaryDirectory(), 'control.sock');
  const settings = { control: { path: socket } };
  const cluster = await ClusterProcess.start({ ...options, options: settings, env });
  const advise = (seconds: number, ...args: string[]) =>
    commandLine('advise', '--cluster', socket, '--seconds', String(seconds), ...args);
  return { cluster, socket, advise };
}

/** Runs `task` while clients ask for the light routes, and for the ones that block. */
async function underLoad<T>(
  { url }: ClusterProcess,
  [light, blocking]: readonly [perSecond: number, perSecond: number],
  task: () => Promise<T>,
): Promise<T> {
  const loads = [new SteadyLoad(url, LIGHT, light), new SteadyLoad(url, BLOCKING, blocking)];
  try {
    return await task();
  } finally {
    await Promise.all(loads.map((load) => load.stop()));
  }
}

const MIXED = [60, 3] as const;

it('names the five routes that block among 20, under mixed load', async () => {
  const { cluster, advise } = await start();

  const { code, stdout, stderr } = await underLoad(cluster, MIXED, () => advise(8, '--json'));

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const advice = JSON.parse(stdout) as Advice;
  const found = advice.methods.map(({ name, route, kind, cpuBound }) =>
    [name, route, kind, cpuBound].join(' '),
  );
  expect(found.sort()).toEqual([
    'BlockingController.crypto GET /blocking/crypto crypto refused',
    'BlockingController.json GET /blocking/json json refused',
    'BlockingController.library GET /blocking/library code refused',
    'BlockingController.regexp GET /blocking/regexp regexp refused',
    'Reports.build  code can work',
  ]);
  expect(advice.waitP99WithoutMs).toBeLessThan(advice.waitP99Ms / 2);
  expect([advice.workers, advice.lost, advice.nothing]).toEqual([2, [], null]);
});

it('names them in a bundle in one line without a source map', async () => {
  const { TEST_APP } = behaviour('twenty-routes');
  const directory = temporaryDirectory();
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(directory, 'node_modules'));
  const build = await rolldown({ input: TEST_APP, external: (id) => !/^[./]/.test(id) });
  const file = join(directory, 'app.mjs');
  await build.write({ file, minify: { mangle: { keepNames: true } } });
  await build.close();
  const { cluster, advise } = await start({ env: { TEST_APP: file } });

  const { stdout } = await underLoad(cluster, MIXED, () => advise(8));

  const rows = stdout.split('\n').filter((line) => line.includes('/app.mjs:1:'));
  const found = rows.map((row) => /[A-Z]\w+\.[a-z]+/.exec(row)![0]);
  expect(found.sort()).toEqual([
    'BlockingController.crypto',
    'BlockingController.json',
    'BlockingController.library',
    'BlockingController.regexp',
    'Reports.build',
  ]);
  expect(stdout).toContain('Reports.build: @CpuBound() can work here; its callers get a promise');
});

it('goes on when a worker dies and when the cluster reloads, and says what is missing', async () => {
  const { cluster, socket, advise } = await start();

  const advised = await underLoad(cluster, MIXED, async () => {
    const advising = advise(20, '--json');
    process.kill(cluster.workerPids[0]!, 'SIGKILL');
    const readied = () => cluster.all('worker-ready').length;
    await eventually('a worker in its place', readied, (count) => count > 2);
    await printed('reload', '--cluster', socket, '--json');
    return advising;
  });

  const advice = JSON.parse(advised.stdout) as Advice;
  expect(advice.lost.length).toBeGreaterThan(0);
  expect(advice.lost.map(({ reason }) => reason)).toContainEqual(
    expect.stringMatching(/the worker ended before|the worker has ended by now/),
  );
  expect(advice.methods.map(({ name }) => name)).toContain('BlockingController.regexp');
});
