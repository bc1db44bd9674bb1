import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import type { ClusterStatus } from '../../src/control/cluster-status.js';
import type { Trial } from '../../src/tools/advise/trial.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { commandLine, printed } from '../support/command-line.js';
import { eventually } from '../support/eventually.js';
import { SteadyLoad } from '../support/steady-load.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const METHOD = 'BlockingController.recursion';

async function start() {
  const socket = join(temporaryDirectory(), 'control.sock');
  const options = { control: { path: socket } };
  const cluster = await ClusterProcess.start({ options, env: behaviour('trials') });
  const to = ['--cluster', socket];
  const tryOne = (method: string) =>
    commandLine('advise', '--try', method, '--seconds', '3', '--json', ...to);
  const trials = async () => {
    const status: ClusterStatus = JSON.parse(await printed('status', '--json', ...to));
    return status.cluster.workers.flatMap(({ pid, state, trial }) =>
      trial && state === 'ready' ? [pid!] : [],
    );
  };
  return { cluster, to, tryOne, trials };
}

it('runs a method without @CpuBound() in a thread of one worker, and puts it back', async () => {
  const { cluster, tryOne, trials } = await start();
  const load = new SteadyLoad(cluster.url, ['/light', '/light', '/blocking/recursion'], 6);
  const trying = tryOne(METHOD);
  await eventually('the trial', trials, (found) => found.length === 1);

  const places = new Set<boolean>();
  const ask = async () => {
    const answer = await fetch(`${cluster.url}/blocking/recursion`, {
      headers: { connection: 'close' },
    });
    places.add(((await answer.json()) as { inThread: boolean }).inThread);
    return places.size;
  };
  await eventually('an answer of each worker', ask, (size) => size === 2);
  const { code, stdout, stderr } = await trying;

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const trial = JSON.parse(stdout) as Trial;
  expect(trial).toMatchObject({ method: METHOD, slot: 1, without: { workers: 1, errors: 0 } });
  expect(trial.with).toMatchObject({ workers: 1, errors: 0, busy: expect.any(Number) });
  expect(trial.with.requestsPerSecond).toBeGreaterThan(0);
  expect(await trials()).toEqual([]);
  await load.stop();
  expect(load.lost).toEqual([]);
});

it('refuses what cannot work, a second trial, and a trial whose worker ends', async () => {
  const { cluster, to, tryOne, trials } = await start();

  const refused = await tryOne('LightController.light');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('the constructor of LightController takes arguments');
  const trying = tryOne(METHOD);
  const [on] = await eventually('the trial', trials, (found) => found.length === 1);
  const second = await tryOne('BlockingController.json');
  expect(second.stderr).toContain(`a trial of ${METHOD} is under way`);

  process.kill(on!, 'SIGKILL');
  const { code, stderr } = await trying;

  expect(code).toBe(1);
  expect(stderr).toContain('the worker of the trial has ended or was replaced');
  const ready = async () => JSON.parse(await printed('status', '--json', ...to)).cluster.ready;
  await eventually('the worker in its place', ready, (count) => count === 2);
  expect(await trials()).toEqual([]);
  expect(cluster.all('worker-restarting')).toHaveLength(1);
});
