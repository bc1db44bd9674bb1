import {
  type ClientOptions,
  type ClientProxy,
  ClientProxyFactory,
  Transport,
} from '@nestjs/microservices';
import { Redis } from 'ioredis';
import { once } from 'node:events';
import net from 'node:net';
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { NEVER_MS } from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { IS_FIRST_RUN } from '../support/once.js';
import { RedisProcess } from '../support/redis-process.js';
import { describeWith } from '../support/system-packages.js';

afterEach(stopAll);

const PROGRAMS = ['app', 'nest11'] as const;

async function start(rpc: ClientOptions, options: StartOptions = {}): Promise<ClusterProcess> {
  const env = { ...behaviour('rpc'), TEST_RPC: JSON.stringify(rpc) };
  return ClusterProcess.start({ ...options, env });
}

function connect(rpc: ClientOptions): ClientProxy {
  const client = ClientProxyFactory.create(rpc);
  onTestFinished(async () => {
    await client.close();
  });
  return client;
}

interface Answer {
  readonly name: string;
  readonly pid: number;
}

const ask = (client: ClientProxy, name: string, ms: number) =>
  firstValueFrom(client.send<Answer>('wait', { name, ms }));

function handled(cluster: ClusterProcess, name: string, what = 'began', times = 1): Promise<void> {
  return cluster.until(
    `${name} ${what}`,
    () => cluster.output.split(`${what} ${name} in `).length > times,
  );
}

async function tcp(): Promise<ClientOptions> {
  const port = await freePorts(1);
  return { transport: Transport.TCP, options: { host: '127.0.0.1', port } };
}

describe('a TCP microservice of a hybrid app', () => {
  it.each(PROGRAMS)('answers what it has begun before its cluster ends (%s)', async (program) => {
    const rpc = await tcp();
    const cluster = await start(rpc, {
      program,
      options: { shutdown: { drainTimeoutMs: NEVER_MS } },
    });
    const clients = Array.from({ length: 4 }, () => connect(rpc));
    const answers = clients.flatMap((client, i) => [
      ask(client, `one-${i}`, 1_000),
      ask(client, `two-${i}`, 1_000),
    ]);
    const stream = lastValueFrom(
      clients[0]!
        .send<Answer & { index: number }>('stream', { name: 's', ms: 1_000 })
        .pipe(toArray()),
    );
    clients[1]!.emit('note', { name: 'note', ms: 1_000 });
    for (const i of clients.keys()) await handled(cluster, `two-${i}`);
    await handled(cluster, 'note');

    cluster.kill('SIGTERM');

    expect((await Promise.all(answers)).map(({ name }) => name)).toEqual(
      clients.flatMap((_, i) => [`one-${i}`, `two-${i}`]),
    );
    expect((await stream).map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.output).toContain('ended note in ');
    expect(cluster.all('worker-stopped')).toMatchObject(
      Array.from({ length: 2 }, () => ({ problem: null, abortedRequests: 0 })),
    );
  });

  it('answers those that had connected before', async () => {
    const rpc = await tcp();
    const cluster = await start(rpc, { options: { workers: 1 } });
    const pid = cluster.workerPids[0]!;
    await ask(connect(rpc), 'up', 0); // it has its signal handlers by then
    process.kill(pid, 'SIGSTOP'); // they have to wait
    const { port } = rpc.options as { port: number };
    const clients = Array.from({ length: 50 }, () => net.connect(port, '127.0.0.1'));
    const message = JSON.stringify({ pattern: 'wait', data: { name: 'queued', ms: 0 }, id: '1' });
    const texts = clients.map(async (client) => {
      client.setEncoding('utf8').write(`${message.length}#${message}`);
      return (await client.toArray().catch((error: Error) => [error.message])).join('');
    });
    await Promise.all(clients.map((client) => once(client, 'connect')));

    cluster.kill('SIGTERM');
    process.kill(pid, 'SIGCONT');

    const lost = (await Promise.all(texts)).filter((text) => !text.includes('"name":"queued"'));
    expect(lost).toEqual([]);
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  });
});

if (IS_FIRST_RUN) {
  describeWith(['redis-server'], 'a Redis microservice of a hybrid app', () => {
    it('takes no new message once its onDrain() has stopped it, and answers those that it has', async () => {
      const redis = await RedisProcess.start();
      onTestFinished(() => redis.stop());
      const rpc: ClientOptions = {
        transport: Transport.REDIS,
        options: { host: '127.0.0.1', port: redis.port },
      };
      const cluster = await start(rpc, {
        options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      });
      const watching = new Redis(redis.port, '127.0.0.1');
      onTestFinished(() => watching.disconnect());
      const client = connect(rpc);
      const answer = ask(client, 'begun', 4_000);
      await handled(cluster, 'begun');

      cluster.kill('SIGTERM');
      await cluster.event('worker-draining');
      await eventually('nobody who listens', async () => {
        const [, listeners] = await watching.pubsub('NUMSUB', 'note');
        return listeners === 0;
      });
      expect(cluster.all('worker-stopped')).toEqual([]); // it still answers
      client.emit('note', { name: 'late', ms: 1 });

      expect(await answer).toMatchObject({ name: 'begun' });
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
      expect(cluster.output).not.toContain('began late');
      expect(cluster.all('worker-stopped')).toMatchObject([{ problem: null, abortedRequests: 0 }]);
    });
  });
}
