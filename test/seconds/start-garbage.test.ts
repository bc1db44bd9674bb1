import { afterEach, expect, it } from 'vitest';
import { untilIdle } from '../../src/contract/process/process-meter.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';

afterEach(stopAll);

it('every process collects the garbage of its startup once it has been idle for 5 s', async () => {
  const cluster = await ClusterProcess.start({
    options: { workers: 1 },
    execArgv: ['--trace-gc'],
  });
  const pids = [cluster.pid, ...cluster.workerPids];
  const hasCollected = (pid: number) =>
    new RegExp(`^\\[${pid}:.*low memory notification`, 'm').test(cluster.output);
  await cluster.until('the collections', () => pids.every(hasCollected));
});

it('a process is not idle while its event loop is half busy', async () => {
  const load = setInterval(() => {
    for (const end = performance.now() + 10; performance.now() < end;);
  }, 20);
  expect(await untilIdle(100, 0.05, 500)).toBe(false);
  clearInterval(load);
  expect(await untilIdle(100, 0.05, 500)).toBe(true);
});
