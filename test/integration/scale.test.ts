import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type http from 'node:http';
import type { ClusterSnapshot, WorkerIdentity } from 'nestjs-cluster';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { Build } from '../support/builds.js';
import { ClusterProcess, type LogLine, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { CONTROLLED, PrimaryControl, type Refusal } from '../support/primary-control.js';
import { childrenOf } from '../support/processes.js';
import { scrape } from '../support/scrape.js';
import { Traffic } from '../support/traffic.js';

/** Resolves once the workers of exactly these slots serve, and nothing else is left. */
async function serving(cluster: ClusterProcess, workers: number): Promise<void> {
  await eventually(
    `${workers} workers and nothing else`,
    () => [childrenOf(cluster.pid).length, cluster.workerPids.length],
    ([children, ready]) => children === workers && ready === workers,
  );
}

/** A step of scaling that comes from now on. */
function nextScaling(cluster: ClusterProcess): Promise<LogLine> {
  const before = cluster.all('scaling').length;
  return cluster.event('scaling', (line) => cluster.all('scaling').indexOf(line) >= before);
}

interface Scaled extends Partial<Refusal> {
  readonly status: number | undefined;
  readonly by: WorkerIdentity;
  readonly snapshot: ClusterSnapshot;
}

/** Has a worker's app scale the cluster, from inside a request. */
async function scaleWithin(
  cluster: ClusterProcess,
  workers: number | string,
  agent?: http.Agent,
): Promise<Scaled> {
  const { status, body } = await request(cluster.url, `/scale/${workers}`, {
    method: 'POST',
    ...(agent && { agent }),
  });
  return { status, ...(JSON.parse(body || '{}') as Omit<Scaled, 'status'>) };
}

const WRONG = [
  { given: 0, shown: '0' },
  { given: -1, shown: '-1' },
  { given: 1.5, shown: '1.5' },
  { given: 257, shown: '257' },
];

const REFUSED = {
  name: 'ClusterConfigurationError',
  code: 'CLUSTER_CONFIGURATION',
  message: expect.stringContaining('a whole number from 1 to 256'),
};

describe('scaling under load', () => {
  let cluster: ClusterProcess;
  let control: PrimaryControl;
  let traffic: Traffic;

  /** Workers of a deployed build `reload-gated` wait for it in their boot. */
  let gate: string;
  let build: Build;

  beforeAll(async () => {
    const directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-'));
    gate = join(directory, 'gate');
    build = new Build('builds#works', directory);
    cluster = await ClusterProcess.start({
      env: { ...CONTROLLED, ...build.env, TEST_GATE: gate },
    });
    control = await PrimaryControl.of(cluster);
    traffic = new Traffic(cluster.url, 1);
    await traffic.serves(50);
  });

  afterAll(async () => {
    await traffic.stop();
    await stopAll();
    rmSync(dirname(gate), { recursive: true });
  });

  /** No request was lost, no worker died, and the removed workers ended without a problem. */
  async function unnoticed(): Promise<void> {
    await traffic.serves(50);
    expect(traffic.lost).toEqual([]);
    expect(cluster.all('worker-died')).toEqual([]);
    for (const stopped of cluster.all('worker-stopped')) {
      expect(stopped).toMatchObject({ cause: 'scale', problem: null, abortedRequests: 0 });
    }
  }

  it('SIGTTIN adds a worker that serves, SIGTTOU takes it away', async () => {
    const before = cluster.workerPids;

    cluster.kill('SIGTTIN');

    expect(await cluster.event('scaling')).toMatchObject({
      level: 'info',
      from: 2,
      to: 3,
      reason: 'SIGTTIN',
    });
    await serving(cluster, 3);
    const added = cluster.workerPids[2]!;
    await traffic.until('an answer of the new worker', () => traffic.seen.get(0)!.has(added));
    cluster.kill('SIGTTOU');
    expect(await cluster.event('worker-stopped')).toMatchObject({ worker: 2, pid: added });
    await serving(cluster, 2);
    expect(cluster.workerPids).toEqual(before);
    await unnoticed();
  });

  it('SIGTTIN twice before the first new worker is ready adds two', async () => {
    const ready = cluster.all('worker-ready').length;
    build.deploy('builds#gated');
    const first = nextScaling(cluster);
    cluster.kill('SIGTTIN');
    await first;
    const second = nextScaling(cluster);

    cluster.kill('SIGTTIN');

    expect(await second).toMatchObject({ from: 3, to: 4 });
    expect(cluster.all('worker-ready')).toHaveLength(ready);
    writeFileSync(gate, '');
    await serving(cluster, 4);
    await unnoticed();
  });

  it('scale() of the runtime resolves once those that are too many are gone', async () => {
    const [first] = cluster.workerPids;

    const down = await control.scale(1);

    expect(down).toMatchObject({ desired: 1, ready: 1, workers: [{ slot: 0, pid: first }] });
    expect(childrenOf(cluster.pid)).toEqual([first]);
    await unnoticed();
  });

  it('SIGTTOU never takes the last worker away', async () => {
    const before = cluster.all('scaling').length;

    cluster.kill('SIGTTOU');

    const warning = await cluster.event('warning', ({ message }) => message.includes('SIGTTOU'));
    expect(warning).toMatchObject({ level: 'warn' });
    expect(warning.message).toContain('0 workers');
    expect(cluster.all('scaling')).toHaveLength(before);
    expect(await control.snapshot()).toMatchObject({ desired: 1, ready: 1 });
    await unnoticed();
  });

  it('scale() of the runtime resolves once the new workers are ready', async () => {
    const up = await control.scale(3);

    expect(up).toMatchObject({ desired: 3, ready: 3 });
    expect(up.workers.map(({ slot, state }) => [slot, state])).toEqual([
      [0, 'ready'],
      [1, 'ready'],
      [2, 'ready'],
    ]);
    expect(await control.scale(3)).toMatchObject({ desired: 3, ready: 3 });
    await unnoticed();
  });

  it.each([...WRONG, { given: '2', shown: '"2"' }, { given: null, shown: 'null' }])(
    'scale($shown) of the runtime is refused, and says what is allowed',
    async ({ given, shown }) => {
      const { error } = await control.scale<Refusal>(given);

      expect(error).toEqual(REFUSED);
      expect(error.message).toContain(`${shown} is not allowed`);
      expect(await control.snapshot()).toMatchObject({ desired: 3, ready: 3 });
    },
  );

  it.each([...WRONG, { given: 'many', shown: 'NaN' }])(
    'scale($shown) inside a request is refused, and says what is allowed',
    async ({ given, shown }) => {
      const { status, error } = await scaleWithin(cluster, given);

      expect(status).toBe(201);
      expect(error).toEqual(REFUSED);
      expect(error!.message).toContain(`${shown} is not allowed`);
      expect(await control.snapshot()).toMatchObject({ desired: 3, ready: 3 });
    },
  );

  it('scale() inside a request is answered also where it takes away who asked', async () => {
    const [, , asker] = cluster.workerPids;
    const agent = await agentOf(cluster.url, asker!);

    const { status, by, snapshot } = await scaleWithin(cluster, 2, agent);

    expect([status, by]).toEqual([201, { slot: 2, generation: 0, pid: asker }]);
    expect(snapshot).toMatchObject({ desired: 2, ready: 2 });
    await serving(cluster, 2);
    await unnoticed();
  });

  it('scale() inside a request is answered once the new worker is ready', async () => {
    const { status, snapshot } = await scaleWithin(cluster, 3);

    expect(status).toBe(201);
    expect(snapshot).toMatchObject({ desired: 3, ready: 3 });
    expect(cluster.all('scaling').at(-1)).toMatchObject({
      from: 2,
      to: 3,
      reason: expect.stringContaining('scale()'),
    });
    await serving(cluster, 3);
    await unnoticed();
  });

  it('two that ask for different numbers at once are both answered; the last one counts', async () => {
    const [, second, third] = cluster.workerPids;
    const agents = [await agentOf(cluster.url, second!), await agentOf(cluster.url, third!)];

    const answers = await Promise.all([
      scaleWithin(cluster, 1, agents[0]),
      scaleWithin(cluster, 2, agents[1]),
    ]);

    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    const { to } = cluster.all('scaling').at(-1)!;
    await serving(cluster, Number(to));
    expect(await control.snapshot()).toMatchObject({ desired: to, ready: to });
    await unnoticed();
  });

  it('no counter falls while workers go and come back', async () => {
    await control.scale(2);
    let scaled = false;
    const falls: string[] = [];
    const last = new Map<string, number>();
    const note = (series: string, value: number): void => {
      const before = last.get(series) ?? 0;
      if (value < before) falls.push(`${series} fell from ${before} to ${value}`);
      last.set(series, value);
    };
    let pages = 0;
    const scraping = (async () => {
      while (!scaled) {
        const page = await scrape(cluster.url);
        pages += 1;
        const served = 'nestjs_cluster_worker_requests_total';
        for (const worker of page.labelValues(served, 'worker')) {
          note(`${served}{worker="${worker}"}`, page.sum(served, { worker }));
        }
        note('requests of all workers', page.sum('nestjs_cluster_worker_requests_total'));
        note('http_request_duration_seconds', page.sum('http_request_duration_seconds_count'));
      }
    })();

    await traffic.serves(50);
    await control.scale(1);
    await traffic.serves(50);
    await control.scale(3);
    await traffic.serves(50);
    scaled = true;
    await scraping;

    expect(falls.join()).toBe('');
    expect(pages).toBeGreaterThan(5);
    await unnoticed();
  });
});

describe('scaling under load on fastify', () => {
  afterEach(stopAll);

  it('loses no request either way', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { ...CONTROLLED, ...behaviour('builds#works'), TEST_ADAPTER: 'fastify' },
    });
    const control = await PrimaryControl.of(cluster);
    const traffic = new Traffic(cluster.url, 1);
    await traffic.serves(50);

    for (const workers of [2, 1]) {
      expect(await control.scale(workers)).toMatchObject({ desired: workers, ready: workers });
      await traffic.serves(50);
    }

    expect(await traffic.stop()).toEqual([]);
    for (const stopped of cluster.all('worker-stopped')) {
      expect(stopped).toMatchObject({ cause: 'scale', problem: null, abortedRequests: 0 });
    }
    expect(cluster.all('worker-stopped')).toHaveLength(1);
  });
});
