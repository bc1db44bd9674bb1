import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { behaviour, pathOfBehaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { began } from '../support/drain.js';
import { Load, request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { Gates } from '../support/offload.js';
import { CONTROLLED, PrimaryControl } from '../support/primary-control.js';
import { ended, generations, onlyLeft } from '../support/replacements.js';
import { scrape } from '../support/scrape.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { Traffic } from '../support/traffic.js';

describe('a reload of a broken build', () => {
  const directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-'));
  const build = join(directory, 'build.mjs');
  /** Workers that are forked from now on run this source. */
  const write = (source: string): void => {
    writeFileSync(`${build}.new`, source);
    renameSync(`${build}.new`, build);
  };
  const deploy = (name: string): void => {
    const [path, exported] = pathOfBehaviour(name).split('#');
    write(`export { ${exported} as setup } from '${pathToFileURL(path!).href}';\n`);
  };
  let cluster: ClusterProcess;
  let control: PrimaryControl;
  let traffic: Traffic;
  let aborted = 0;

  beforeAll(async () => {
    deploy('builds#works');
    cluster = await ClusterProcess.start({ env: { ...CONTROLLED, BEHAVE: build } });
    control = await PrimaryControl.of(cluster);
    traffic = new Traffic(cluster.url, 1);
    await traffic.serves(50);
  });

  afterAll(async () => {
    await traffic.stop();
    await stopAll();
    rmSync(directory, { recursive: true });
  });

  it.each([
    {
      what: 'with a syntax error',
      deploy: () => write('export function setup() {'),
      reason: /SyntaxError/,
    },
    {
      what: 'that ends with 0 before it is ready',
      deploy: () => deploy('crashes#exitsBeforeReady'),
      reason: /exited with code 0/,
    },
    {
      what: 'that dies 500 ms after it is ready',
      deploy: () => deploy('builds#dies'),
      reason: /the licence has expired/,
    },
    {
      what: 'whose health check is red',
      deploy: () => deploy('builds#red'),
      reason: /health check failed: .*too slow to be of use/,
    },
  ])('$what is aborted, and the workers before it serve on', async ({ deploy, reason }) => {
    const before = cluster.workerPids;
    deploy();

    const result = await control.reload();

    aborted += 1;
    expect(result).toMatchObject({ outcome: 'aborted', generation: aborted });
    expect(result.reason).toMatch(reason);
    expect(result.reason).toContain(`worker=0 gen=${aborted}: `);
    const line = await ended(cluster, aborted);
    expect(line).toMatchObject({ level: 'error', outcome: 'aborted', reason: result.reason });
    expect(line.message).toMatch(reason);
    await onlyLeft(cluster, 2);
    expect(cluster.workerPids).toEqual(before);
    await traffic.until('answers of both', () => traffic.seen.get(0)?.size === before.length);
    await traffic.serves(50);
    expect(traffic.lost).toEqual([]);
    expect(new Set(traffic.seen.get(0))).toEqual(new Set(before));
    const page = await scrape(cluster.url);
    expect(page.values('nestjs_cluster_reloads_total', { outcome: 'aborted' })).toEqual([aborted]);
    expect(page.values('nestjs_cluster_reloads_total', { outcome: 'completed' })).toEqual([0]);
    expect(page.values('nestjs_cluster_generation')).toEqual([0]);
    expect(page.sum('nestjs_cluster_worker_restarts_total')).toBe(0);
  });

  it('that works in the first slot alone stops there', async () => {
    const [, second] = cluster.workerPids;
    write(
      `export { works as setup } from ${JSON.stringify(pathToFileURL(pathOfBehaviour('builds')).href)};
       if (JSON.parse(process.env.NESTJS_CLUSTER_WORKER).slot === 1) throw new Error('no room');`,
    );

    const result = await control.reload();

    aborted += 1;
    expect(result.reason).toMatch(new RegExp(`worker=1 gen=${aborted}: .*no room`));
    await onlyLeft(cluster, 2);
    expect(cluster.workerPids[1]).toBe(second);
    expect(generations(cluster)).toEqual([
      [0, aborted],
      [1, 0],
    ]);
    await traffic.serves(50);
    expect(traffic.lost).toEqual([]);
  });

  it('is mended by the next one, which completes', async () => {
    deploy('builds#works');

    const result = await control.reload();

    expect(result).toEqual({ outcome: 'completed', generation: aborted + 1, reason: null });
    expect(generations(cluster)).toEqual([
      [0, aborted + 1],
      [1, aborted + 1],
    ]);
    await traffic.until('an answer of it', () => traffic.seen.has(aborted + 1));
    expect(traffic.lost).toEqual([]);
    const page = await scrape(cluster.url);
    expect(page.values('nestjs_cluster_reloads_total', { outcome: 'aborted' })).toEqual([aborted]);
    expect(page.values('nestjs_cluster_reloads_total', { outcome: 'completed' })).toEqual([1]);
    expect(page.values('nestjs_cluster_generation')).toEqual([aborted + 1]);
  });
});

describe('a reload whose new worker never becomes ready', () => {
  afterEach(stopAll);

  it('is aborted at readyTimeoutMs, and the workers before it serve on', async () => {
    const gate = join(temporaryDirectory(), 'gate');
    writeFileSync(gate, '');
    const cluster = await ClusterProcess.start({
      program: 'bare',
      // Many times what its workers take, which have no Nest.
      options: { readyTimeoutMs: 5_000 },
      env: { TEST_GATE: gate },
    });
    const before = cluster.workerPids;
    const load = new Load(cluster.url, '/', { clients: 2, pauseMs: 20 });
    await load.serves(20);
    rmSync(gate);

    cluster.kill('SIGHUP');

    const line = await ended(cluster, 1);
    expect(line).toMatchObject({ level: 'error', outcome: 'aborted' });
    expect(line['reason']).toMatch(/^worker=0 gen=1: .*not ready within 5000 ms/);
    await onlyLeft(cluster, 2);
    expect(cluster.workerPids).toEqual(before);
    await load.serves(20);
    expect(await load.stop()).toMatchObject({ 'bad-status': 0, reset: 0, refused: 0, timeout: 0 });
  });
});

describe('SIGTERM during a reload', () => {
  afterEach(stopAll);

  it('drains both generations and exits with 0', async () => {
    const gates = new Gates();
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { ...CONTROLLED, ...behaviour('streams#announced'), ...gates.env },
    });
    const control = await PrimaryControl.of(cluster);
    const [old] = cluster.workerPids;
    const result = control.reload();
    const candidate = await cluster.event('worker-ready', ({ gen }) => gen === 1);
    const agents = [await agentOf(cluster.url, old!), await agentOf(cluster.url, candidate.pid!)];
    const slow = agents.map((agent) => request(cluster.url, '/gate/slow', { agent }));
    await began(cluster, '/gate/slow', 2);

    cluster.kill('SIGTERM');

    expect(await result).toMatchObject({
      outcome: 'aborted',
      generation: 1,
      reason: expect.stringContaining('the cluster is shutting down'),
    });
    await cluster.until('both to drain', () => cluster.all('worker-draining').length === 2);
    gates.open('slow');
    expect((await Promise.all(slow)).map(({ outcome }) => outcome)).toEqual(['ok', 'ok']);
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.all('worker-stopped')).toHaveLength(2);
    for (const stopped of cluster.all('worker-stopped')) {
      expect(stopped).toMatchObject({ problem: null, abortedRequests: 0 });
    }
    expect(cluster.survivors()).toEqual([]);
  });
});
