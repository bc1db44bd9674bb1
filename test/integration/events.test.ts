import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';

afterEach(stopAll);

it.each(['app', 'nest11'] as const)(
  'every worker of %s hears of every worker, by @OnClusterEvent()',
  async (program) => {
    const cluster = await ClusterProcess.start({ program, env: behaviour('messages#events') });
    const [victim, survivor] = cluster.workerPids as [number, number];

    // Each hears that itself is ready, too.
    await cluster.until('both to hear of themselves', () =>
      [victim, survivor].every((pid) =>
        cluster.output.includes(`of ${pid} heard of ${pid}: ready`),
      ),
    );
    process.kill(victim, 'SIGKILL');

    await cluster.until('an exit', () =>
      cluster.output.includes(`of ${survivor} heard of ${victim}: killed`),
    );
    const { pid: next } = await cluster.event(
      'worker-ready',
      (line) => line.pid !== survivor && line.pid !== victim,
    );
    await cluster.until('another one', () =>
      [survivor, next].every((pid) => cluster.output.includes(`of ${pid} heard of ${next}: ready`)),
    );
  },
);

it('the option on hears what is before the first worker is ready, and throws to no effect', async () => {
  const cluster = await ClusterProcess.start({
    program: 'bare',
    options: { workers: 1 },
    env: { TEST_ON: '["starting","worker-ready","worker-exit","stopped"]' },
  });
  const { pid } = (await cluster.event('worker-ready'))!;
  expect(cluster.output).toContain(`heard starting {"workers":1,"pid":${cluster.pid}`);
  expect(cluster.output).toContain(
    `heard worker-ready {"worker":{"slot":0,"generation":0,"pid":${pid}}`,
  );
  cluster.child.kill('SIGTERM');

  expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  expect(cluster.output).toMatch(/heard worker-exit .*"cause":"shutdown","failed":false/);
  expect(cluster.output).toContain('heard stopped {"exitCode":0');
  expect(cluster.all('warning').map(({ message }) => message)).toContainEqual(
    expect.stringContaining("a listener for 'starting' threw: Error: thrown on starting"),
  );
  expect(cluster.all('worker-exit')).toEqual([]); // it has no line of its own
});
