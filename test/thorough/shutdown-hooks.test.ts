import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { began } from '../support/drain.js';
import { request } from '../support/http-client.js';

afterEach(stopAll);

interface Row {
  /** See the behaviour. */
  readonly enable: string;
  readonly program?: 'app' | 'nest11';
  readonly adapter?: string;
}

function start({ enable, program = 'app', adapter = 'express' }: Row, options: StartOptions = {}) {
  return ClusterProcess.start({
    program,
    within: ['setsid'],
    ...options,
    env: {
      ...behaviour('drain-shutdown-hooks'),
      TEST_ENABLE: enable,
      TEST_ADAPTER: adapter,
      ...options.env,
    },
  });
}

/** Every hook that ran, by the process that ran it. */
function hooksOf({ output }: ClusterProcess): Record<string, string[]> {
  const hooks: Record<string, string[]> = {};
  for (const [, hook, pid, signal] of output.matchAll(/^hook (\w+) of (\d+): (\w+)$/gm)) {
    (hooks[pid!] ??= []).push(`${hook} ${signal}`);
  }
  return hooks;
}

const once = (signal: string) => ['destroy none', `before ${signal}`, `shutdown ${signal}`];

function hintsOf(cluster: ClusterProcess) {
  return cluster.all('warning').filter(({ message }) => message.includes('enableShutdownHooks()'));
}

describe('shutdown hooks of an app that has Nest listen to signals', () => {
  it.each([
    // As systemd does by default, and as Ctrl-C does.
    { enable: 'all', signal: 'SIGTERM', workers: 2 },
    { enable: 'list', program: 'nest11', signal: 'SIGINT' },
    { enable: 'late', program: 'nest11', adapter: 'fastify', signal: 'SIGTERM' },
    { enable: 'microservice', signal: 'SIGTERM' },
    { enable: 'own', signal: 'SIGTERM' },
    { enable: 'all', program: 'nest11', signal: 'SIGTERM', workers: 0 },
    { enable: 'exit', adapter: 'fastify', signal: 'SIGINT', workers: 0 },
  ] as const)(
    'run once, after the last request of a group that gets a signal: $enable $program $adapter $signal $workers',
    async (row) => {
      const { enable, signal } = row;
      const workers: number = ('workers' in row ? row.workers : undefined) ?? 1;
      const cluster = await start(row, { options: { workers } });
      if (enable === 'late') {
        await cluster.event('warning', ({ message }) => message.includes('enableShutdownHooks()'));
      }
      const answer = request(cluster.url, '/query/700');
      await began(cluster, '/query/700');
      const pids = workers === 0 ? [cluster.pid] : cluster.workerPids;

      process.kill(-cluster.pid, signal);

      expect(await answer).toMatchObject({ status: 200 });
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
      expect(hooksOf(cluster)).toEqual(Object.fromEntries(pids.map((pid) => [pid, once(signal)])));
      // Once a cluster, not once a worker.
      expect(hintsOf(cluster)).toHaveLength(enable === 'own' ? 0 : 1);
      expect(cluster.all('worker-stopped').map(({ problem }) => problem)).toEqual(
        Array.from({ length: workers }, () => null),
      );
    },
  );

  it.each(['express', 'fastify', 'node'])(
    'run so late that return503OnClosing refuses no request in a drain, also where the app closes itself: %s',
    async (adapter) => {
      const options = { workers: 1, shutdown: { lameDuckMs: 1_000 } };
      const cluster = await start(
        { enable: 'own', adapter },
        { options, env: { TEST_503: 'true' } },
      );
      const answer = request(cluster.url, '/query/700');
      await began(cluster, '/query/700');

      process.kill(-cluster.pid, 'SIGTERM');

      await cluster.event('worker-draining');
      expect(await request(cluster.url, '/query/0')).toMatchObject({ status: 200 });
      expect(await answer).toMatchObject({ status: 200 });
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
      expect(Object.values(hooksOf(cluster))).toEqual([once('SIGTERM')]);
    },
  );

  it('run after the drain of the one worker that gets SIGTERM, and a reload is a SIGTERM', async () => {
    const workers = 2;
    const cluster = await start({ enable: 'all' }, { options: { workers } });
    const answer = request(cluster.url, '/query/700');
    await began(cluster, '/query/700');
    const [asked] = cluster.workerPids as [number];

    process.kill(asked, 'SIGTERM');

    await cluster.event('worker-stopped', ({ pid }) => pid === asked);
    expect(await answer).toMatchObject({ status: 200 });
    // And in no other.
    expect(hooksOf(cluster)).toEqual({ [asked]: once('SIGTERM') });
    expect(cluster.all('worker-died')).toEqual([]);
    await cluster.until('a replacement', () => cluster.workerPids.length === workers);
    const others = cluster.workerPids;
    cluster.kill('SIGHUP');
    await cluster.event('reload-ended');
    for (const other of others) {
      await cluster.event('worker-stopped', ({ pid }) => pid === other);
      expect(hooksOf(cluster)[other]).toEqual(once('SIGTERM'));
    }
  });

  it('of a further context run once where a hook of the app closes it', async () => {
    const cluster = await start({ enable: 'context' }, { options: { workers: 1 } });
    const pids = cluster.workerPids;

    process.kill(-cluster.pid, 'SIGTERM');

    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    const closed = [...cluster.output.matchAll(/^jobs closed by (\d+)$/gm)];
    expect(closed).toHaveLength(pids.length);
    expect(new Set(closed.map(([, pid]) => Number(pid)))).toEqual(new Set(pids));
    expect(hooksOf(cluster)).toEqual(
      Object.fromEntries(pids.map((pid) => [pid, expect.arrayContaining(once('SIGTERM'))])),
    );
    expect(hintsOf(cluster)).toHaveLength(1);
  });
});
