import { setTimeout as delay } from 'node:timers/promises';
import { ARTICLES } from './articles.mjs';
import { kills, reloads } from './losses.mjs';
import { compareWindows } from './compare-windows.mjs';
import { EVERYBODY, heavyPath } from '../systems/index.mjs';
import { wrk } from '../load/wrk.mjs';
import { measureUsage, readMemory } from '../usage.mjs';
import { compare } from './compare.mjs';
import { probeApart } from '../load/light-route.mjs';
import { ProcessGroup } from '../process-group.mjs';
import { quantile } from '../statistics.mjs';
import { SampleCluster } from '../systems/sample-app.mjs';

const SCRAPED_WORKERS = 8;
const SCRAPES = 300;

const scrape = {
  name: 'scrape',
  title: 'A scrape of eight workers',
  about: `GET /metrics of the sample app with ${SCRAPED_WORKERS} workers, of a worker and of the admin listener, one after the other: with all workers, and with a worker that was stopped by SIGSTOP.`,
  rounds: 1,
  adapters: ['express'],
  parameters: { workers: SCRAPED_WORKERS, scrapes: SCRAPES },
  async rows({ pick, progress, node, adapter, nextPort }) {
    if (pick(['nestjs-cluster']).length === 0) return [];
    const rows = [];
    const report = async (group, label, port, count) => {
      const metrics = await scrapes(port, count);
      progress(`${group}, ${label}: p50 ${metrics.p50Ms.toFixed(1)} ms`);
      rows.push({ group, system: 'nestjs-cluster', label, ours: true, ...metrics });
    };
    const port = await nextPort();
    const admin = port + 1;
    await ProcessGroup.begin(async (group) => {
      const env = { ADMIN_PORT: String(admin) };
      const cluster = new SampleCluster(group, {
        node,
        adapter,
        workers: SCRAPED_WORKERS,
        port,
        env,
      });
      await cluster.serves();
      await scrapes(port, 100); // V8 compiles the hot code in each worker
      await report('worker', 'all workers', port, SCRAPES);
      await report('admin listener', 'all workers', admin, SCRAPES);
      process.kill(cluster.workerPids().at(-1), 'SIGSTOP');
      // A connection that the stopped worker has accepted waits for it: only the primary is asked.
      await report('admin listener', 'a worker stopped', admin, 20);
      process.kill(cluster.workerPids().at(-1), 'SIGCONT');
      await group.stop();
    });
    return rows;
  },
};

async function scrapes(port, count) {
  const took = [];
  for (let i = 0; i < count; i += 1) {
    const begun = performance.now();
    const response = await fetch(`http://127.0.0.1:${port}/metrics`, {
      headers: { connection: 'close', 'accept-encoding': 'identity' },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status}: ${text.slice(0, 200)}`);
    took.push(performance.now() - begun);
  }
  return { p50Ms: quantile(took, 0.5), p99Ms: quantile(took, 0.99), maxMs: Math.max(...took) };
}

const LOAD_SECONDS = 5;
/** nestjs-cluster collects the garbage of its start after 5 s without load. */
const IDLE_MS = 10_000;
const SETTLE_MS = 1_000;

/** nestjs-cluster with its threads turned off, which shows how much memory that saves. */
const VARIANTS = [
  { label: 'nestjs-cluster, no threads for @CpuBound', env: { CLUSTER_OFFLOAD: 'inline' } },
  {
    label: 'nestjs-cluster, neither threads nor watchdog',
    env: { CLUSTER_OFFLOAD: 'inline', SAMPLE_OPTIONS: '{"watchdog":false}' },
  },
];

const memory = {
  name: 'memory',
  title: 'Memory',
  about: `Resident memory after ${IDLE_MS / 1_000} s without load, and after ${LOAD_SECONDS} s of wrk on 64 kept connections. A worker of nestjs-cluster has, beside the app, the watchdog's thread, and where the app has @CpuBound() methods, as the sample app does, what is loaded for them: no thread runs before the first call, but one worker has checked at the start that a thread can load them. The last rows are without.`,
  rounds: 3,
  programs: ['wrk'],
  adapters: ['express', 'fastify'],
  parameters: { loadSeconds: LOAD_SECONDS, connections: 64 },
  metric: 'totalRssBytes',
  rows(run) {
    const systems = run.pick([
      'one-process',
      'node-cluster-round-robin',
      'node-cluster-shared',
      'reuse-port',
      'pm2',
      'watt',
      'nginx',
      'nestjs-cluster',
    ]);
    const ours = systems.find(({ name }) => name === 'nestjs-cluster');
    return compare({
      run,
      contestants: [
        ...systems.map((system) => ({ system })),
        ...(ours ? VARIANTS.map((variant) => ({ system: ours, ...variant })) : []),
      ],
      async measure(running, { startMs }) {
        await delay(IDLE_MS);
        const idle = readMemory(running);
        await wrk(running, { path: '/hello', connections: 64, seconds: LOAD_SECONDS });
        await delay(SETTLE_MS);
        return {
          startMs,
          idleFrontRssBytes: idle.frontRssBytes,
          idleWorkerRssBytes: idle.workerRssBytes,
          idleTotalRssBytes: idle.totalRssBytes,
          ...readMemory(running),
        };
      },
    });
  },
};

const HEAVY_CLIENTS = 16;

const mixed = {
  name: 'mixed',
  title: 'Heavy and light requests together',
  about:
    '16 clients ask for fibonacci(35) without pause, on kept connections; a light route, GET /hello, is asked every 10 ms. What is not answered counts with the time it waited.',
  seconds: 10,
  rounds: 3,
  programs: ['wrk'],
  adapters: ['express'],
  parameters: { clients: HEAVY_CLIENTS },
  metric: 'lightP99Ms',
  rows(run) {
    return compare({
      run,
      contestants: run.contestants([
        'one-process',
        'node-cluster-round-robin',
        'node-cluster-shared',
        'reuse-port',
        'pm2',
        'watt',
        'nestjs-cluster',
        'nestjs-cluster-cpu-bound',
        'one-process-cpu-bound',
      ]),
      async measure(running, { offload }) {
        const path = heavyPath(offload);
        const { seconds } = run;
        const [heavy, light] = await Promise.all([
          wrk(running, { path, connections: HEAVY_CLIENTS, seconds, timeoutSeconds: 30 }),
          probeApart(running, { path: '/hello', seconds }),
        ]);
        return { heavyPerSecond: heavy.requestsPerSecond, ...light, errors: heavy.errors };
      },
    });
  },
};

const WARM_UP_SECONDS = 5;
const LOADS = [
  { workers: 2, connections: 64 },
  { workers: 8, connections: 128 },
];

const evenness = {
  name: 'evenness',
  title: 'Evenness of kept connections',
  about:
    'wrk on kept connections, GET /hello: CPU time of the busiest worker over the mean of all. 1 is even; with two workers 2 means that one of them does everything.',
  seconds: 5,
  rounds: 5,
  programs: ['wrk'],
  adapters: ['express'],
  parameters: { warmUpSeconds: WARM_UP_SECONDS, path: '/hello' },
  metric: 'busiestWorst',
  async rows(run) {
    const systems = run.pick(EVERYBODY.filter((name) => name !== 'one-process'));
    const rows = [];
    for (const { workers, connections } of LOADS) {
      const compared = await compare({
        run,
        group: `${workers} workers, ${connections} connections`,
        contestants: systems.map((system) => ({ system, workers })),
        // Eight workers are not warm after five seconds, so what a request costs is not said here.
        async measure(running) {
          const load = { path: '/hello', connections };
          await wrk(running, { ...load, seconds: WARM_UP_SECONDS });
          const used = measureUsage(running);
          const { requests, errors } = await wrk(running, { ...load, seconds: run.seconds });
          const { busiestRatio } = used(requests);
          return { errors, busiestRatio, busiestWorst: busiestRatio };
        },
      });
      rows.push(...compared);
    }
    return rows;
  },
};

const HELLO = { path: '/hello', connections: 64 };

/** The CPU cost of a request on a route that does almost nothing, and the throughput. */
function throughput({ newConnections, ...description }) {
  return {
    seconds: 2,
    starts: 6,
    windows: 2,
    programs: ['wrk'],
    parameters: HELLO,
    metric: 'cpuMicros',
    adapters: ['express', 'fastify'],
    baseline: 'nestjs-cluster',
    rows(run) {
      return compareWindows({
        run,
        group: run.group,
        baseline: 'nestjs-cluster',
        contestants: run.contestants(EVERYBODY),
        load: { ...HELLO, newConnections },
      });
    },
    ...description,
  };
}

const keepAlive = throughput({
  name: 'keep-alive',
  title: 'Keep-alive',
  about:
    'wrk on 64 kept connections, GET /hello. CPU per request is user and system time of all server processes, primary or proxy included. nestjs-cluster runs with everything on: metrics, health, supervision, watchdog; the others run the same app without it.',
  newConnections: false,
});

const newConnections = throughput({
  name: 'new-connections',
  title: 'A new connection for each request',
  about: 'As before, but every request comes on a connection of its own.',
  newConnections: true,
});

export { ARTICLES };

/** Everything in which systems are compared, in the order of the report. */
export const COMPARISONS = [
  ...ARTICLES,
  keepAlive,
  newConnections,
  evenness,
  mixed,
  reloads,
  kills,
  memory,
  scrape,
];
