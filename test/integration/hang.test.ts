import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { replacementOf } from '../support/replacements.js';
import { eventually } from '../support/eventually.js';
import { type Block, hang, HANG_TIMEOUT_MS } from '../support/hang.js';
import { clusterReport } from '../support/health.js';
import { request } from '../support/http-client.js';
import { itOnce } from '../support/once.js';
import { isReaped, openDescriptorsOf, residentBytesOf } from '../support/processes.js';
import { RawClient } from '../support/raw-client.js';

afterEach(stopAll);

describe('a worker that hangs', () => {
  it.each([
    { kind: 'regexp', what: 'a catastrophic regular expression', frame: /^matchCatastrophically / },
    { kind: 'wait', what: 'Atomics.wait()', frame: /^sleepWithoutCpu / },
  ])('in $what is killed and shown', async ({ kind, frame }) => {
    const cluster = await ClusterProcess.start({
      options: { hangTimeoutMs: HANG_TIMEOUT_MS },
      env: behaviour('crashes#hangs'),
    });
    const client = await RawClient.open(cluster.url);

    const pid = await hang(cluster, client, kind);

    const died = await cluster.event('worker-died');
    expect(died).toMatchObject({ pid, cause: 'hang' });
    expect(died.message).toContain(`in flight: GET /hang/${kind} for `);
    const { requests, frames } = died['blocked'] as Block;
    expect(requests.map(({ path }) => path)).toEqual([`/hang/${kind}`]);
    expect(frames.some((line) => frame.test(line))).toBe(true);
    await replacementOf(cluster, died.worker!, died.pid!);
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
  });

  itOnce('is killed without a watchdog too, and then without its stack', async () => {
    const cluster = await ClusterProcess.start({
      options: { hangTimeoutMs: HANG_TIMEOUT_MS, watchdog: false },
      env: behaviour('crashes#hangs'),
    });
    const client = await RawClient.open(cluster.url);

    const pid = await hang(cluster, client, 'wait');

    const died = await cluster.event('worker-died');
    expect(died).toMatchObject({ pid, cause: 'hang', blocked: null });
    await client.end();
    await replacementOf(cluster, died.worker!, died.pid!);
  });

  itOnce('because it is stopped from outside is ended by SIGKILL and replaced', async () => {
    const cluster = await ClusterProcess.start({ options: { hangTimeoutMs: HANG_TIMEOUT_MS } });
    const [victim, other] = cluster.workerPids as [number, number];

    process.kill(victim, 'SIGSTOP');

    const died = await cluster.event('worker-died');
    expect(died).toMatchObject({ worker: 0, pid: victim, cause: 'hang' });
    expect(isReaped(victim)).toBe(true);
    const ready = await replacementOf(cluster, died.worker!, died.pid!);
    expect(cluster.workerPids).toEqual([ready.pid, other]);
    expect((await clusterReport(cluster.url)).workers[0]!.lastExit).toMatchObject({
      cause: 'hang',
      code: null,
      signal: 'SIGKILL',
    });
  });

  itOnce('is one of all, and the connections of a flood wait and are answered', async () => {
    const cluster = await ClusterProcess.start({
      options: { hangTimeoutMs: 6_000 },
    });
    const before = {
      descriptors: openDescriptorsOf(cluster.pid),
      resident: residentBytesOf(cluster.pid),
    };
    for (const pid of cluster.workerPids) process.kill(pid, 'SIGSTOP');

    const flood = await Promise.all(Array.from({ length: 500 }, () => RawClient.open(cluster.url)));
    for (const client of flood) client.write('GET /hello HTTP/1.1\r\nHost: test\r\n\r\n');
    expect(cluster.all('worker-died')).toEqual([]);
    // Nothing of the flood passes through the primary.
    expect(openDescriptorsOf(cluster.pid)).toBeLessThanOrEqual(before.descriptors);
    expect(residentBytesOf(cluster.pid)).toBeLessThan(before.resident + 20e6);

    await cluster.until('the end of both', () => cluster.all('worker-died').length === 2);
    expect(cluster.all('worker-died').map(({ cause }) => cause)).toEqual(['hang', 'hang']);
    await Promise.all(flood.map((client) => client.until(/Hello World!$/)));
    for (const client of flood) client.destroy();
    await cluster.until('both replacements', () => cluster.workerPids.length === 2);
    await eventually(
      'no more descriptors than before',
      () => openDescriptorsOf(cluster.pid),
      (now) => now <= before.descriptors,
    );
    expect(residentBytesOf(cluster.pid)).toBeLessThan(before.resident + 20e6);
  });

  itOnce('in its shutdown, and ignores SIGTERM, is ended by SIGKILL at killTimeoutMs', async () => {
    const cluster = await ClusterProcess.start({
      options: {
        workers: 1,
        hangTimeoutMs: false,
        shutdown: { drainTimeoutMs: 300, killTimeoutMs: 300 },
      },
      env: behaviour('crashes#ignoresSigterm'),
    });
    const [pid] = cluster.workerPids as [number];
    const blocked = request(cluster.url, '/hang/wait');
    await cluster.until('the block', () => cluster.output.includes('hanging wait'));
    process.kill(pid, 'SIGTERM');

    cluster.kill('SIGTERM');

    expect(await cluster.exited()).toEqual({ code: 1, signal: null });
    expect(await blocked).toMatchObject({ outcome: 'reset' });
    expect(cluster.all('worker-stopped')).toMatchObject([
      { pid, problem: 'it did not exit in time and was killed' },
    ]);
    expect(cluster.survivors()).toEqual([]);
  });
});
