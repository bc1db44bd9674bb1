import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { BARE } from '../support/crashes.js';
import { getJson } from '../support/http-client.js';
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

  it('is one JSON object a line where CLUSTER_LOG_FORMAT is json', async () => {
    const { lines } = await life('json');

    const events = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    for (const event of events) {
      expect(event).toMatchObject({
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        level: expect.stringMatching(/^(info|warn|error)$/),
        message: expect.any(String),
      });
      if (String(event['event']).startsWith('worker-')) {
        const { worker, gen, pid } = event;
        expect(event['message']).toContain(
          `worker=${String(worker)} gen=${String(gen)} pid=${String(pid)} `,
        );
      }
    }
    const count = (name: string) => events.filter(({ event }) => event === name).length;
    for (const name of ['worker-ready', 'worker-draining', 'worker-stopped']) {
      expect([name, count(name)]).toEqual([name, 3]);
    }
    for (const name of ['starting', 'listening', 'started', 'stopping', 'stopped']) {
      expect([name, count(name)]).toEqual([name, 1]);
    }
    expect(events).toHaveLength(3 * 3 + 5);
  });

  it('says in text why it gives up', async () => {
    const cluster = new ClusterProcess({
      options: { workers: 1 },
      env: { ...behaviour('throws-at-import'), CLUSTER_LOG_FORMAT: 'text' },
    });
    await cluster.exited();

    const line = cluster.output.split('\n').find((each) => each.includes('in 2 attempts'))!;
    expect(line.slice(line.indexOf('giving up'))).toMatch(
      /^giving up \(exit code 70\): no worker became ready in 2 attempts: Error: DATABASE_URL is not set at file:.*throws-at-import\.mjs:\d+:\d+$/,
    );
  });

  it.each(['text', 'json'] as const)(
    'keeps what an error says on one line of %s',
    async (format) => {
      const cluster = new ClusterProcess({
        options: { workers: 1 },
        env: { ...behaviour('crashes#faults'), CLUSTER_LOG_FORMAT: format },
      });
      await cluster.until('a url', () => /http:\/\/127\.0\.0\.1:\d+/.test(cluster.output));
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(cluster.output)![0];

      const { pid } = (await getJson<{ pid: number }>(url, '/faults/ugly')).body;
      await cluster.until('its end', () => cluster.output.includes(`pid=${pid} died`));

      const [line, ...more] = cluster.output
        .split('\n')
        .filter((each) => each.includes(`pid=${pid} died`));
      expect(more).toEqual([]);
      expect(line).not.toMatch(CONTROL_CHARACTER);
      const message =
        format === 'json' ? (JSON.parse(line!) as { message: string }).message : line!;
      expect(message).toContain('Error: first | second red {"time":"forged"} at ');
    },
  );
});

describe('the option log', () => {
  it('has each line in its format given to a function of the primary, whose errors end nothing', async () => {
    const cluster = new ClusterProcess({
      program: BARE,
      options: { workers: 1, log: { format: 'json' } },
      env: { TEST_WRITE: 'yes', CLUSTER_LOG_FORMAT: '' },
    });
    await cluster.until('its start', () => cluster.output.includes('"event":"started"'));
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });

    const lines = cluster.output.trimEnd().split('\n');
    const prefix = `written by ${cluster.pid} as info: `;
    const given = lines.filter((line) => line.startsWith(prefix));
    const events = given.map((line) => JSON.parse(line.slice(prefix.length)) as { event: string });
    expect(events.map(({ event }) => event).toSorted()).toEqual(
      [
        'starting',
        'worker-ready',
        'listening',
        'started',
        'stopping',
        'worker-draining',
        'worker-stopped',
        'stopped',
      ].toSorted(),
    );
    for (const event of events) expect(event).toMatchObject({ level: 'info' });
    const others = lines.filter((line) => !line.startsWith(prefix));
    expect(others.map((line) => JSON.parse(line) as object)).toMatchObject([
      {
        level: 'warn',
        error: { message: 'the disk is gone' },
        message: expect.stringMatching(/^log\.write failed/),
      },
    ]);
  });

  it('leaves out what is below its level, but never why the cluster gives up', async () => {
    const cluster = new ClusterProcess({
      options: { workers: 1, log: { level: 'silent' } },
      env: { ...behaviour('throws-at-import'), CLUSTER_LOG_FORMAT: '', NO_COLOR: '1' },
    });
    expect(await cluster.exited()).toEqual({ code: 70, signal: null });

    const lines = cluster.output.split('\n').filter((line) => line.includes('[cluster]'));
    expect(lines).toEqual([
      expect.stringMatching(
        / error \[cluster\] giving up \(exit code 70\): .*DATABASE_URL is not set/,
      ),
    ]);
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

  it('are not cut where the command line is short', async () => {
    const cluster = await ClusterProcess.start({
      program: 'app.mjs',
      cwd: join(import.meta.dirname, '../fixtures'),
      // As a shell does: the name alone, as it was typed.
      within: ['bash', '-c', 'exec -a node "$@"', 'bash'],
    });

    expect(commandLineOf(cluster.pid)).toBe('primary');
    expect(commandLineOf(cluster.workerPids[0]!)).toBe('worker=0 gen=0 nestjs-cluster');
  });
});
