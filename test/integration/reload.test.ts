import { existsSync, renameSync, rmSync } from 'node:fs';
import type http from 'node:http';
import { join } from 'node:path';
import type { ReloadResult, WorkerIdentity } from 'nestjs-cluster';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { getJson, request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { CONTROLLED, PrimaryControl } from '../support/primary-control.js';
import { childrenOf } from '../support/processes.js';
import { Releases } from '../support/releases.js';
import { ascending, ended, generations, nextReady, onlyLeft } from '../support/replacements.js';
import { scrape } from '../support/scrape.js';
import { Traffic } from '../support/traffic.js';

/** Asks a worker's app to reload, from inside a request. */
async function reloadWithin(
  cluster: ClusterProcess,
  agent?: http.Agent,
): Promise<{ status: number | undefined; by: WorkerIdentity; result: ReloadResult }> {
  const { status, body } = await request(cluster.url, '/reload', {
    method: 'POST',
    ...(agent && { agent }),
  });
  return { status, ...(JSON.parse(body || '{}') as { by: WorkerIdentity; result: ReloadResult }) };
}

describe('a reload', () => {
  afterEach(stopAll);

  it.each([
    { adapter: 'express', workers: 2, reloads: 1 },
    { adapter: 'fastify', workers: 1, reloads: 2 },
    { adapter: 'node', workers: 2, reloads: 1 },
  ])('loses no request: $adapter, $workers workers', async ({ adapter, workers, reloads }) => {
    const cluster = await ClusterProcess.start({
      options: { workers },
      env: { ...behaviour('builds#works'), TEST_ADAPTER: adapter },
    });
    const traffic = new Traffic(cluster.url, 1);
    await traffic.serves(100);

    for (let generation = 1; generation <= reloads; generation++) {
      cluster.kill('SIGHUP');
      expect(await ended(cluster, generation)).toMatchObject({
        level: 'info',
        outcome: 'completed',
        reason: null,
      });
      await traffic.until(`answer of generation ${generation}`, () => traffic.seen.has(generation));
    }
    await traffic.serves(100);

    expect(await traffic.stop()).toEqual([]);
    expect([...traffic.seen.keys()].toSorted(ascending)).toEqual(
      Array.from({ length: reloads + 1 }, (_, generation) => generation),
    );
    const slots = Array.from({ length: workers }, (_, slot) => slot);
    expect(generations(cluster)).toEqual(slots.map((slot) => [slot, reloads]));
    expect(cluster.all('worker-died')).toEqual([]);
    expect(cluster.all('stopping')).toEqual([]);
    expect(cluster.all('worker-stopped')).toHaveLength(reloads * workers);
    for (const stopped of cluster.all('worker-stopped')) {
      expect(stopped).toMatchObject({ cause: 'reload', problem: null, abortedRequests: 0 });
    }
    const page = await scrape(cluster.url);
    expect(page.values('nestjs_cluster_reloads_total', { outcome: 'completed' })).toEqual([
      reloads,
    ]);
    expect(page.values('nestjs_cluster_generation')).toEqual([reloads]);
    await onlyLeft(cluster, workers);
  });

  it('leaves no descriptor, listener or worker behind in the primary, each time', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: CONTROLLED,
    });
    const control = await PrimaryControl.of(cluster);
    const look = async () => ({
      ...(await control.listeners()),
      descriptors: control.descriptors,
    });
    await control.reload();
    await onlyLeft(cluster, 1);
    const before = await look();

    for (let reload = 2; reload <= 4; reload++) {
      expect(await control.reload()).toMatchObject({ outcome: 'completed', generation: reload });
    }

    // Fewer descriptors are fine: a pipe of the first reload may still have been open at `before`.
    const after = await eventually(
      'no more descriptors than before',
      look,
      (now) => now.descriptors <= before.descriptors,
    );
    expect({ ...after, descriptors: before.descriptors }).toEqual(before);
    expect(before.workers).toBe(1);
  });
});

describe('reload() inside a request', () => {
  let cluster: ClusterProcess;
  let generation = 0;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      env: behaviour('builds#works'),
    });
  });

  afterAll(stopAll);

  /** Slots in the order in which they were replaced by the last reload. */
  const order = () =>
    cluster
      .all('worker-ready')
      .filter(({ gen }) => gen === generation)
      .map(({ worker }) => worker);

  it('gets the result, and the worker that asked is replaced last, though its slot is the first', async () => {
    const slot = 0;
    const agent = await agentOf(cluster.url, cluster.workerPids[slot]!);
    generation += 1;

    const { status, by, result } = await reloadWithin(cluster, agent);

    expect(status).toBe(201);
    expect(by).toMatchObject({ slot, generation: generation - 1 });
    expect(result).toEqual({ outcome: 'completed', generation, reason: null });
    expect(await ended(cluster, generation)).toMatchObject({ outcome: 'completed' });
    expect(order()).toEqual([1 - slot, slot]);
    for (const stopped of cluster.all('worker-stopped')) {
      expect(stopped).toMatchObject({ problem: null, abortedRequests: 0 });
    }
  });
});

describe('a release behind a symlink', () => {
  afterEach(stopAll);

  /** Kills the worker of slot 0 and tells what runs in its place. */
  async function replacedByKill(cluster: ClusterProcess): Promise<unknown> {
    const ready = nextReady(cluster);
    process.kill(cluster.workerPids[0]!, 'SIGKILL');
    await ready;
    return (await getJson(cluster.url, '/release')).body;
  }

  const start = (releases: Releases, program: string): Promise<ClusterProcess> =>
    ClusterProcess.start({
      program,
      cwd: releases.current,
      options: { workers: 1 },
      env: { ...behaviour('builds#works'), PWD: releases.current },
    });

  interface Deployed {
    readonly cluster: ClusterProcess;
    readonly releases: Releases;
    readonly rel1: { readonly cwd: string };
    readonly rel2: { readonly cwd: string };
  }

  /** One that is broken aborts it; one that has been cleaned away is not what a worker comes back from. */
  async function cleanedAway({ cluster, releases, rel1, rel2 }: Deployed): Promise<void> {
    releases.add('rel3', `throw new Error('rel3 is broken');`);
    releases.pointTo('rel3');
    cluster.kill('SIGHUP');
    const { outcome, reason } = await ended(cluster, 2);
    expect(outcome).toBe('aborted');
    expect(reason).toContain('rel3 is broken');
    expect(await replacedByKill(cluster)).toEqual(rel2);

    releases.pointTo('rel1');
    rmSync(rel2.cwd, { recursive: true });
    expect(await replacedByKill(cluster)).toEqual(rel1);
    cluster.kill('SIGHUP');
    expect(await ended(cluster, 3)).toMatchObject({ outcome: 'completed' });
  }

  /** One that is not there at a reload aborts it, and what is missing is said. */
  async function notThere({ cluster, releases }: Deployed): Promise<void> {
    const before = cluster.workerPids;
    releases.pointTo('rel1');
    renameSync(join(releases.current, 'main.mjs'), join(releases.current, 'old.mjs'));
    cluster.kill('SIGHUP');
    const withoutScript = await ended(cluster, 2);
    releases.pointTo('nowhere');
    cluster.kill('SIGHUP');
    const withoutDirectory = await ended(cluster, 3);

    expect(withoutScript).toMatchObject({ outcome: 'aborted', level: 'error' });
    expect(withoutScript.reason).toContain('main.mjs');
    expect(withoutDirectory).toMatchObject({ outcome: 'aborted', level: 'error' });
    expect(withoutDirectory.reason).toBe(
      `the working directory ${releases.current} does not exist`,
    );
    expect(cluster.workerPids).toEqual(before);
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
    releases.pointTo('rel1');
    renameSync(join(releases.current, 'old.mjs'), join(releases.current, 'main.mjs'));
    cluster.kill('SIGHUP');
    expect(await ended(cluster, 4)).toMatchObject({ outcome: 'completed' });
  }

  it.each([
    {
      named: 'relative to the working directory',
      script: () => 'main.mjs',
      also: 'one that is broken, or cleaned away, is not run',
      andThen: cleanedAway,
    },
    {
      named: 'through the link',
      script: ({ current }: Releases) => join(current, 'main.mjs'),
      also: 'one that is not there aborts it',
      andThen: notThere,
    },
  ])(
    'takes effect with a reload that completes, and not before: script named $named; $also',
    async ({ script, andThen }) => {
      const releases = new Releases();
      const rel1 = { release: 'rel1', cwd: releases.add('rel1') };
      const rel2 = { release: 'rel2', cwd: releases.add('rel2') };
      releases.pointTo('rel1');
      const cluster = await start(releases, script(releases));
      expect((await getJson(cluster.url, '/release')).body).toEqual(rel1);

      releases.pointTo('rel2');
      expect(await replacedByKill(cluster)).toEqual(rel1);
      cluster.kill('SIGHUP');
      expect(await ended(cluster, 1)).toMatchObject({ outcome: 'completed' });
      expect((await getJson(cluster.url, '/release')).body).toEqual(rel2);
      await andThen({ cluster, releases, rel1, rel2 });
    },
  );
});

/** Prefix of a command: runs it on a new terminal. */
const ON_A_TERMINAL = ['sh', '-c', 'exec script -qec "$0 $*" /dev/null'];

describe.runIf(existsSync('/usr/bin/script'))('SIGHUP on a terminal', () => {
  afterEach(stopAll);

  async function onTerminal(): Promise<{ cluster: ClusterProcess; primary: number }> {
    const cluster = await ClusterProcess.start({
      within: ON_A_TERMINAL,
      options: { workers: 1 },
    });
    let primary = childrenOf(cluster.pid)[0]!;
    // Some shells of script(1) fork the command instead of replacing themselves by it.
    if (!childrenOf(primary).includes(cluster.workerPids[0]!)) primary = childrenOf(primary)[0]!;
    onTestFinished(() => {
      expect(cluster.survivors()).toEqual([]);
    });
    return { cluster, primary };
  }

  it('shuts down instead', async () => {
    const { cluster, primary } = await onTerminal();

    process.kill(primary, 'SIGHUP');

    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.all('stopping')).toMatchObject([
      { reason: 'SIGHUP in a terminal', force: 'drain' },
    ]);
    expect(cluster.all('reload-started')).toEqual([]);
  });

  it('is what closing the terminal sends, and nothing is left behind', async () => {
    const { cluster } = await onTerminal();

    process.kill(cluster.pid, 'SIGKILL');

    await cluster.gone();
  });
});
