import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { Jobs, Messages } from '../support/consumers.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { describeWith } from '../support/system-packages.js';

afterEach(stopAll);

/** CONSUMER_ROUNDS=10 is 10 reloads and 10 kills. */
const ROUNDS = Number(process.env['CONSUMER_ROUNDS'] ?? 1);
const [RELOADS, KILLS] = [ROUNDS, ROUNDS];

describeWith(['redis-server'], 'an app that only consumes jobs and messages', () => {
  it(
    'loses none that was acknowledged in reloads and kills',
    async () => {
      const { jobs, port: redisPort } = await Jobs.start();
      const port = await freePorts(1);
      const cluster = await ClusterProcess.start({
        program: 'noHttp',
        options: { port: undefined, host: undefined, shutdown: { drainTimeoutMs: 1_000 } },
        env: {
          ...behaviour('consumer'),
          TEST_KIND: 'microservice',
          TEST_RPC: JSON.stringify({ transport: 0, options: { host: '127.0.0.1', port } }),
          TEST_REDIS: String(redisPort),
          TEST_QUEUE: 'nest',
        },
      });
      const clients = Array.from({ length: 4 }, () => new Messages(port));
      const sending = clients.map((client, i) => client.keepSending(`message-${i}`, 25, 20 * i));
      const adding = jobs.keepAdding(30, 60);
      const twoWorkers = () => cluster.until('two workers', () => cluster.workerPids.length === 2);

      for (let reload = 1; reload <= RELOADS; reload += 1) {
        cluster.kill('SIGHUP');
        await cluster.until('a reload', () => cluster.all('reload-ended').length === reload);
        await twoWorkers();
      }
      expect(cluster.all('reload-ended').map(({ outcome }) => outcome)).toEqual(
        Array.from({ length: RELOADS }, () => 'completed'),
      );
      // A message that crosses the end of its connection fails and is sent again: it had not begun.
      const failures = clients.flatMap((client) => client.failures);
      expect(failures).toEqual(
        failures.map(() => expect.objectContaining({ message: 'Connection closed' })),
      );
      const begun = cluster.output.match(/began message-\S+/g)!;
      expect(begun.length).toBe(new Set(begun).size);
      const before = clients.flatMap(({ acknowledged }) => acknowledged).length;
      expect(begun.length).toBeGreaterThanOrEqual(before);

      for (let kill = 1; kill <= KILLS; kill += 1) {
        process.kill(cluster.workerPids[kill % 2]!, 'SIGKILL');
        await cluster.until('a death', () => cluster.all('worker-died').length === kill);
        await twoWorkers();
      }
      jobs.stop();
      for (const client of clients) client.stop();
      await Promise.all([adding, ...sending]);

      await eventually(
        'every job done',
        () => jobs.lost(),
        (lost) => lost.length === 0,
      );
      const counts = await jobs.queue.getJobCounts('failed', 'active', 'waiting', 'completed');
      expect(counts).toMatchObject({ failed: 0, waiting: 0 });
      const done = new Set(await jobs.redis.smembers('messages-done'));
      const acknowledged = clients.flatMap((client) => client.acknowledged);
      expect(acknowledged.filter((id) => !done.has(id))).toEqual([]);
      expect(acknowledged.length).toBeGreaterThan(before);
      cluster.kill('SIGTERM');
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    },
    60_000 + 30_000 * ROUNDS,
  );
});
