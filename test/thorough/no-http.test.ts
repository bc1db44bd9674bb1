import { type ClientProxy, ClientProxyFactory, Transport } from '@nestjs/microservices';
import { Queue } from 'bullmq';
import { firstValueFrom } from 'rxjs';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { freePorts } from '../support/free-ports.js';
import type { HealthBody } from '../support/health.js';
import { getJson, request } from '../support/http-client.js';
import { listenersOf } from '../support/kernel-sockets.js';
import { MetricsPage } from '../support/metrics-page.js';
import { NetworkNamespace } from '../support/network-namespace.js';
import { RedisProcess } from '../support/redis-process.js';
import { describeWith } from '../support/system-packages.js';

afterEach(stopAll);

const CONTEXT = { TEST_KIND: 'context' };

/** No address: as a user starts such an app. */
function start({ options, env, ...start }: StartOptions): Promise<ClusterProcess> {
  const noAddress = { port: undefined, host: undefined, ...options };
  return ClusterProcess.start({ ...start, options: noAddress, env: { ...CONTEXT, ...env } });
}

const reloaded = (cluster: ClusterProcess) =>
  cluster.event('reload-ended', ({ outcome }) => outcome === 'completed');

describe('an app without an HTTP server', () => {
  it.each(['app', 'nest11'] as const)(
    'is seen at the admin listener and replaced like any other, and no address is bound for it (%s)',
    async (program) => {
      const cluster = await start({
        program,
        options: { admin: { port: 0 } },
        env: behaviour('context'),
      });
      const admin = cluster.adminUrl;
      const [listening] = cluster.all('listening');
      expect(listening).toMatchObject({ url: null, balancing: 'none', ports: [], endpoints: [] });
      expect(listening!.message).toBe(
        `the first of 2 workers is ready, no HTTP server (admin: ${admin})`,
      );
      const ports = [cluster.pid, ...cluster.workerPids].flatMap((pid) =>
        listenersOf(pid).map(({ localPort }) => `:${localPort}`),
      );
      expect(ports).toEqual([/:\d+$/.exec(admin)![0]]);

      const { body: health } = await getJson<HealthBody>(admin, '/health');
      expect(health.details.cluster).toMatchObject({ status: 'up', ready: 2, desired: 2 });
      const page = new MetricsPage((await request(admin, '/metrics')).body);
      expect(page.values('app_consumed_total')).toEqual([2]);
      expect(page.values('process_cpu_seconds_total')).toHaveLength(1);
      expect(cluster.output).toContain('slot 1 of 2 workers');

      process.kill(cluster.workerPids[1]!, 'SIGKILL');
      await cluster.event('worker-ready', ({ worker }) => worker === 1);
      await cluster.until('two workers', () => cluster.workerPids.length === 2);
      cluster.kill('SIGHUP');
      await reloaded(cluster);
      cluster.kill('SIGTERM');
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
      expect(cluster.all('worker-stopped').filter(({ problem }) => problem !== null)).toEqual([]);
      expect(cluster.output).toContain('hook told of SIGTERM');
    },
  );

  it('may be given an address, and is told once that nothing listens there', async () => {
    const cluster = await ClusterProcess.start({ env: { ...CONTEXT, ...behaviour('context') } });
    const warnings = cluster.all('warning').map(({ message }) => message);
    expect(warnings).toEqual([
      expect.stringContaining('remove the options "port", "host" and "path"'),
    ]);
  });
});

describe('a microservice', () => {
  it.each(['app', 'nest11'] as const)(
    'also one that has called listen() itself, answers what it has begun, and then runs its hooks (%s)',
    async (program) => {
      const port = await freePorts(1);
      const cluster = await start({
        program,
        options: { workers: 0 },
        env: {
          ...behaviour('rpc'),
          TEST_KIND: 'microservice',
          TEST_RPC: JSON.stringify({ transport: 0, options: { host: '127.0.0.1', port } }),
          TEST_LISTENS: program === 'app' ? '1' : '',
        },
      });
      expect(cluster.all('listening')[0]).toMatchObject({ url: null });
      const client: ClientProxy = ClientProxyFactory.create({
        transport: Transport.TCP,
        options: { host: '127.0.0.1', port },
      });
      onTestFinished(() => client.close() as Promise<void>);
      const answer = firstValueFrom(client.send('wait', { name: 'one', ms: 300 }));
      await cluster.until('the message', () => cluster.output.includes('began one'));
      cluster.kill('SIGTERM');
      expect(await answer).toMatchObject({ name: 'one' });
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    },
  );
});

describeWith(['redis-server'], 'a consumer of a queue', () => {
  it.each([
    { program: 'app', queue: 'nest', workers: 1 },
    { program: 'nest11', queue: 'plain', workers: 0 },
  ] as const)(
    'finishes its jobs before its modules are destroyed ($program, workers: $workers)',
    async ({ program, queue, workers }) => {
      const redis = await RedisProcess.start();
      const jobs = new Queue('jobs', { connection: { host: '127.0.0.1', port: redis.port } });
      onTestFinished(async () => {
        await jobs.close();
        await redis.stop();
      });
      const cluster = await start({
        program,
        options: { workers },
        env: { ...behaviour('consumer'), TEST_REDIS: String(redis.port), TEST_QUEUE: queue },
      });
      for (let i = 0; i < 8; i += 1) await jobs.add('job', { id: `job-${i}`, ms: 500 });
      await cluster.until('four jobs', () => cluster.output.split('began job').length > 4);
      cluster.kill('SIGTERM');
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });

      const counts = await jobs.getJobCounts('completed', 'failed', 'active', 'waiting');
      // The signal may have come late, when one of the four had ended and the next had begun.
      const began = cluster.output.split('began job').length - 1;
      expect(began).toBeLessThan(8);
      expect(counts).toEqual({ completed: began, failed: 0, active: 0, waiting: 8 - began });
      expect(cluster.output.match(/closed the database/g)).toHaveLength(1);
    },
  );
});

describeWith(['ip'], 'the default address', () => {
  it('is bound for an app that has an HTTP server, and refused where it is taken', async () => {
    const network = await NetworkNamespace.create();
    onTestFinished(() => network.remove());
    const { within } = network;
    const options = { port: undefined, host: undefined };
    const one = await ClusterProcess.start({ options, within });
    expect(one.all('listening')).toMatchObject([
      { url: 'http://localhost:3000', balancing: 'shared' },
    ]);
    expect(await network.slotsAt('http://127.0.0.1:3000', 1)).toHaveLength(1);
    const consumer = await start({ within, env: behaviour('context') });
    expect(consumer.all('worker-ready')).toHaveLength(2);
    const other = new ClusterProcess({ options, within });
    expect(await other.exited()).toEqual({ code: 69, signal: null });
    expect(other.all('failed')[0]!.message).toMatch(/cannot listen on http:\S+:3000: .*EADDRINUSE/);
  });
});
