import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { behaviour } from '../../../../test/support/behaviour.js';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';
import { freePorts } from '../../../../test/support/free-ports.js';
import { request } from '../../../../test/support/http-client.js';
import { NetworkNamespace } from '../../../../test/support/network-namespace.js';
import { NginxProcess } from '../support/nginx-process.js';
import { RawClient } from '../../../../test/support/raw-client.js';
import { describeWith } from '../../../../test/support/system-packages.js';
import { Traffic } from '../../../../test/support/traffic.js';
import { WebSocketClient } from '../../../../test/support/web-socket-client.js';
import { printed } from '../support/tools.js';

/** Starts nginx in front of a cluster of three, with the configuration that is printed for it. */
async function nginxFor({ url }: ClusterProcess): Promise<NginxProcess> {
  const port = await freePorts(1);
  const cluster = ['--port', new URL(url).port, '--workers', '3'];
  const text = await printed('nginx', ...cluster, '--listen', String(port));
  // Only this test's clients reach it.
  return NginxProcess.start(text.replace('listen ', 'listen 127.0.0.1:'), port);
}

describeWith(['nginx'], 'nginx with the configuration that is printed for it', () => {
  let cluster: ClusterProcess;
  let nginx: NginxProcess;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: { balancing: 'ports', workers: 3, port: await freePorts(3) },
      env: behaviour('streams#proxied'),
    });
    nginx = await nginxFor(cluster);
  });

  afterAll(async () => {
    await nginx?.stop();
    await stopAll();
  });

  it('passes nothing on that a client says of itself', async () => {
    const headers = {
      'x-forwarded-for': '6.6.6.6',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'bank.example',
      'x-forwarded-port': '1',
      'x-real-ip': '6.6.6.6',
      forwarded: 'for=6.6.6.6',
    };

    const { body } = await request(nginx.url, '/peer', { headers });
    expect((JSON.parse(body) as { said: Record<string, string> }).said).toEqual({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-real-ip': '127.0.0.1',
    });
  });

  it('passes events on as they come', async () => {
    const client = await RawClient.open(nginx.url);

    client.get('/sse');

    await client.until(/content-type: text\/event-stream/i);
    await client.until(/^data: /m);
    client.destroy();
  });

  it('passes WebSockets both ways, and tells the worker when a client has gone', async () => {
    const client = await WebSocketClient.open(nginx.url);

    client.send(JSON.stringify({ event: 'echo', data: 'through nginx' }));

    expect(JSON.parse(await client.next())).toEqual({ event: 'echo', data: 'through nginx' });
    client.terminate();
    await cluster.until('the end of the WebSocket', () =>
      cluster.output.includes('web socket closed with 1006'),
    );
  });

  it('loses no more than a killed worker was at, and nothing by a reload', async () => {
    const traffic = new Traffic(nginx.url, 2);
    try {
      await traffic.serves(200);
      const killed = cluster.workerPids[1]!;

      process.kill(killed, 'SIGKILL');
      await cluster.event('worker-ready', ({ worker, pid }) => worker === 1 && pid !== killed);
      await traffic.serves(200);

      // nginx repeats a request without a body at another worker, so only POSTs are lost. Each
      // client sends one POST at a time.
      const lostByTheKill = [...traffic.lost];
      expect(lostByTheKill.filter(({ kind }) => !kind.endsWith('POST'))).toEqual([]);
      expect(lostByTheKill.filter(({ status }) => status !== 502)).toEqual([]);
      expect(lostByTheKill.length).toBeLessThanOrEqual(4);

      cluster.kill('SIGHUP');
      expect(await cluster.event('reload-ended')).toMatchObject({ outcome: 'completed' });
      await traffic.until('every new worker', () => traffic.seen.get(1)?.size === 3);
      await traffic.serves(100);
      expect(traffic.lost.slice(lostByTheKill.length)).toEqual([]);
    } catch (error) {
      throw new Error(`${nginx.output}\n${cluster.output}`, { cause: error });
    } finally {
      await traffic.stop();
    }
  });
});

const IPTABLES = ['iptables', 'ip6tables'] as const;

/** Runs what `iptables` prints. */
async function load(namespace: NetworkNamespace, ...args: readonly string[]): Promise<void> {
  await namespace.output('sh', [], await printed('iptables', ...args));
}

/** All rules of the table nat, from anybody. */
async function rulesOf(namespace: NetworkNamespace): Promise<string> {
  const tables = IPTABLES.map((program) => namespace.output(program, ['-t', 'nat', '-S']));
  return (await Promise.all(tables)).join();
}

const THREE = ['--port', '3000', '--workers', '3'];

/** Asserts that slots answered one after the other, whichever was the first. */
function expectInTurn(slots: readonly number[], workers: number): void {
  const [first] = slots;
  expect(slots).toEqual(slots.map((_, index) => (first! + index) % workers));
}

describeWith([...IPTABLES, 'ip'], 'iptables with the script that is printed for it', () => {
  /** The network of two clusters. */
  let inside: NetworkNamespace;
  /** Another network, which is connected to it. */
  let outside: NetworkNamespace;

  beforeAll(async () => {
    [inside, outside] = [await NetworkNamespace.create(), await NetworkNamespace.create()];
    await inside.connectTo(outside, '10.0.0.1/24', '10.0.0.2/24');
    const balancing = 'ports';
    await Promise.all([
      ClusterProcess.start({
        options: { balancing, workers: 3, port: 3000, host: '0.0.0.0' },
        within: inside.within,
      }),
      // Without a host: by IPv6 as well.
      ClusterProcess.start({
        options: { workers: 2 },
        env: { TEST_OPTIONS: JSON.stringify({ balancing, workers: 2, port: 4000 }) },
        within: inside.within,
      }),
    ]);
  });

  afterAll(async () => {
    await stopAll();
    await inside?.remove();
    await outside?.remove();
  });

  afterEach(async () => {
    for (const program of IPTABLES) {
      for (const what of ['-F', '-X']) await inside.output(program, ['-t', 'nat', what]);
    }
  });

  it('gives new connections from outside to the workers in turn', async () => {
    await load(inside, ...THREE);

    expectInTurn(await outside.slotsAt('http://10.0.0.1', 12), 3);
  });

  it('gives new connections by IPv6 to the workers in turn', async () => {
    const before = await rulesOf(inside);
    const args = ['--port', '4000', '--workers', '2', '--ipv6'];
    await load(inside, ...args);

    expectInTurn(await inside.slotsAt('http://[::1]', 12), 2);
    await load(inside, '--remove', '--ipv6');
    expect(await rulesOf(inside)).toBe(before);
  });

  it('replaces what it had set up before', async () => {
    await load(inside, ...THREE);
    const rules = await rulesOf(inside);

    await load(inside, ...THREE);

    expect(await rulesOf(inside)).toBe(rules);
    await load(inside, '--port', '3000', '--workers', '2');
    expectInTurn(await inside.slotsAt('http://127.0.0.1', 8), 2);
    await load(inside, '--port', '3001', '--workers', '1');
    expect(await inside.slotsAt('http://127.0.0.1', 3)).toEqual([1, 1, 1]);
  });

  it('sets up a second cluster beside the first, by another name', async () => {
    const second = ['--port', '4000', '--workers', '2', '--listen', '8080', '--name', 'second'];
    await load(inside, ...THREE);

    await load(inside, ...second);

    expectInTurn(await inside.slotsAt('http://127.0.0.1:8080', 6), 2);
    expectInTurn(await inside.slotsAt('http://127.0.0.1', 6), 3);
    await load(inside, '--remove');
    expectInTurn(await inside.slotsAt('http://127.0.0.1:8080', 6), 2);
    await expect(inside.slotsAt('http://127.0.0.1', 1)).rejects.toThrow('ECONNREFUSED');
  });
});
