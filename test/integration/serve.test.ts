import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { getJson, request } from '../support/http-client.js';

afterEach(stopAll);

describe.each([
  { program: 'app', adapter: 'express' },
  { program: 'nest11', adapter: 'express' },
  { program: 'nest11', adapter: 'fastify' },
] as const)('$program on $adapter', ({ program, adapter }) => {
  it('serves the app and its endpoints from every worker', async () => {
    const cluster = await ClusterProcess.start({ program, env: { TEST_ADAPTER: adapter } });

    const pids = new Set<number>();
    while (pids.size < 2) pids.add((await getJson(cluster.url, '/whoami')).body.pid);

    expect(pids).toEqual(new Set(cluster.workerPids));
    expect((await request(cluster.url, '/hello')).body).toBe('Hello World!');
    for (const path of ['/health', '/health/live', '/health/ready', '/metrics']) {
      expect([path, (await request(cluster.url, path)).status]).toEqual([path, 200]);
    }
  });
});

describe.each([
  { program: 'app', workers: 1 },
  { program: 'app', workers: 0 },
] as const)('the server of $program on Express with $workers workers', ({ program, workers }) => {
  it('creates requests as Express wants them', async () => {
    const cluster = await ClusterProcess.start({
      program,
      options: { workers },
      env: behaviour('streams#announced'),
    });
    expect((await request(cluster.url, '/hello')).body).toBe('Hello World!');
    await cluster.until('a line of the request', () => /prototype: \w+/.test(cluster.output));
    expect(cluster.output).toContain('prototype: true');
  });
});
