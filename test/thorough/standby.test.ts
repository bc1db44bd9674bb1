import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { getJson } from '../support/http-client.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { anyPage } from '../support/scrape.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

/** Much longer than a spare needs to listen, even on a busy machine. */
const START_MS = 3_000;

const SLOW = { ...behaviour('slow-start'), TEST_START_MS: String(START_MS) };

it.each(['shared', 'round-robin'] as const)(
  'has its number again long before a new worker could have started (%s)',
  async (balancing) => {
    const cluster = await ClusterProcess.start({
      env: SLOW,
      options: { workers: { min: 2, max: 2, standby: 1 }, balancing },
    });
    const spare = await cluster.event('worker-standby');
    expect(spare).toMatchObject({ worker: 2 });
    expect(await clusterReport(cluster.url)).toMatchObject({
      desired: 2,
      ready: 2,
      workers: [{ state: 'ready' }, { state: 'ready' }, { slot: 2, state: 'standby' }],
    });

    const [victim] = cluster.workerPids;
    process.kill(victim!, 'SIGKILL');
    const ready = await cluster.event('worker-ready', ({ pid }) => pid === spare.pid);
    const died = await cluster.event('worker-died');
    expect(await cluster.event('worker-promoted')).toMatchObject({ worker: 2, slot: 0 });
    const belowMs = Date.parse(String(ready['time'])) - Date.parse(String(died['time']));
    expect(belowMs).toBeLessThan(START_MS / 3);
    const { pid, slot } = (await clusterReport(cluster.url)).workers.find(
      (each) => each.pid === spare.pid,
    )!;
    expect({ pid, slot }).toEqual({ pid: spare.pid, slot: 2 });
    // The dead worker's slot has the next spare.
    await cluster.event('worker-standby', ({ worker }) => worker === 0);
    const served = await Promise.all(
      Array.from({ length: 40 }, () => getJson(cluster.url, '/whoami')),
    );
    expect(served.map(({ body }) => (body as { slot: number }).slot)).not.toContain(0);
  },
);

it('shows its spare, reloads it with the others, and closes it', async () => {
  const env = { ...SLOW, TEST_START_MS: '200', XDG_RUNTIME_DIR: temporaryDirectory() };
  const cluster = await ClusterProcess.start({
    env,
    options: { workers: { min: 1, max: 1, standby: 1 }, control: {}, reload: { canaryMs: 100 } },
  });
  const first = await cluster.event('worker-standby');
  const page = await anyPage(cluster.url);
  expect(page.values('nestjs_cluster_workers', { state: 'standby' })).toEqual([1]);
  expect(page.values('nestjs_cluster_worker_up', { worker: '1' })).toEqual([]);
  const { stdout } = await runCommand(NODE, [MAIN, 'status', '--cluster', String(cluster.pid)], {
    cwd: '/',
    env: { ...plainEnvironment(), ...env },
  });
  expect(stdout).toContain('1/1 workers ready (1 to 1, by load), 1 on standby');
  expect(stdout).toMatch(/^ *1 +\d+ +0 +standby /m);

  cluster.kill('SIGHUP');
  const second = await cluster.event('worker-standby', ({ gen }) => gen === 1);
  expect(second.worker).toBe(1);
  await cluster.event('reload-ended');
  expect(cluster.all('worker-ready')).toHaveLength(2);
  expect(cluster.output).toContain(`closed ${first.pid}`);
  cluster.kill('SIGTERM');
  expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  await eventually(
    'a closed spare',
    async () => cluster.output,
    (output) => output.includes(`closed ${second.pid}`),
  );
});

it('has no spare of an app without an HTTP server, and says so', async () => {
  const cluster = await ClusterProcess.start({
    program: 'noHttp',
    options: { workers: { min: 1, max: 1, standby: 1 } },
  });
  expect(await cluster.event('warning')).toMatchObject({
    message: expect.stringContaining('there is no spare (workers.standby)'),
  });
});
