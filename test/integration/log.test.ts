import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { commandLineOf } from '../support/processes.js';

/** Also ESC, by which colours begin. */
const CONTROL_CHARACTER = /\p{Cc}/u;

afterEach(stopAll);

/** Runs a cluster from its start over a change of workers to its end; returns what it wrote. */
async function life(format: 'text' | 'json'): Promise<{ lines: string[]; pids: string[] }> {
  const cluster = new ClusterProcess({ env: { CLUSTER_LOG_FORMAT: format } });
  const ready = () => [...cluster.output.matchAll(/worker=\d gen=0 pid=(\d+) ready/g)];
  await cluster.until('two workers', () => ready().length === 2);
  process.kill(Number(ready()[0]![1]), 'SIGTERM');
  await cluster.until(
    'a third',
    () => ready().length === 3 && / stopped after/.test(cluster.output),
  );
  cluster.kill('SIGTERM');
  expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  const lines = cluster.output.split('\n');
  expect(lines.pop()).toBe('');
  return { lines, pids: ready().map(([, pid]) => pid!) };
}

describe('the log', () => {
  it('is text with the identity of each worker, and no colours in a pipe', async () => {
    const { lines, pids } = await life('text');

    for (const line of lines) {
      expect(line).toMatch(
        /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info |warn |error) \[cluster\] \S/,
      );
      expect(line).not.toMatch(CONTROL_CHARACTER);
    }
    for (const pid of pids) {
      const own = lines.filter((line) => line.includes(`gen=0 pid=${pid} `));
      expect(own.map((line) => /pid=\d+ (\w+)/.exec(line)?.[1])).toEqual([
        'ready',
        'draining',
        'stopped',
      ]);
    }
    // Besides: starting, listening, started, stopping, stopped.
    expect(lines).toHaveLength(3 * 3 + 5);
  });
});

describe('process titles', () => {
  it('tell the primary and the workers apart', async () => {
    const cluster = await ClusterProcess.start();
    const [first, second] = cluster.workerPids as [number, number];

    expect(commandLineOf(cluster.pid)).toBe('primary nestjs-cluster');
    expect(commandLineOf(first)).toBe('worker=0 gen=0 nestjs-cluster');
    expect(commandLineOf(second)).toBe('worker=1 gen=0 nestjs-cluster');
  });
});
