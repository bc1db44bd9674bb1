import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ProcessGroup } from '../process-group.mjs';
import { quantile } from '../statistics.mjs';
import { SampleCluster } from '../systems/sample-app.mjs';

const MANY_SERIES = fileURLToPath(new URL('../apps/series.mjs', import.meta.url));
const WORKERS = 8;
const SCRAPES = 300;
const AT_ONCE = 50;

export const scrape = {
  name: 'scrape',
  title: 'A scrape of eight workers',
  about: `GET /metrics of the sample app with ${WORKERS} workers, of a worker and of the admin listener, one after the other: with the default metrics, with a worker that was stopped by SIGSTOP, and with 5,000 more series in each worker, of which ${AT_ONCE} scrapes at once are measured too.`,
  rounds: 1,
  adapters: ['express'],
  parameters: { workers: WORKERS, scrapes: SCRAPES },
  async rows(run) {
    if (run.pick(['nestjs-cluster']).length === 0) return [];
    const rows = [];
    const report = (group, label, metrics) => {
      run.progress(`${group}, ${label}: p50 ${metrics.p50Ms.toFixed(1)} ms`);
      rows.push({ group, system: 'nestjs-cluster', label, ours: true, ...metrics });
    };
    await withCluster(run, {}, async ({ cluster, ports }) => {
      for (const [group, port] of ports) {
        await sequential(port, 100); // V8 compiles the hot code in each worker
        report(group, 'default metrics', await sequential(port, SCRAPES));
      }
      const stopped = cluster.workerPids().at(-1);
      process.kill(stopped, 'SIGSTOP');
      // A connection that the stopped worker has accepted waits for it: only the primary is asked.
      report(
        'admin listener',
        'a worker stopped',
        await sequential(ports.get('admin listener'), 20),
      );
      process.kill(stopped, 'SIGCONT');
    });
    await withCluster(run, { program: MANY_SERIES }, async ({ group: servers, ports }) => {
      for (const [group, port] of ports) {
        report(group, '5,000 series', await sequential(port, 30));
        const metrics = await parallel(servers, port, ports.get('admin listener'));
        report(group, `5,000 series, ${AT_ONCE} at once`, metrics);
      }
    });
    return rows;
  },
};

/** Runs `use` with a cluster that serves, and ends it. */
async function withCluster({ node, adapter, nextPort }, { program }, use) {
  const port = await nextPort();
  await ProcessGroup.begin(async (group) => {
    const env = { ADMIN_PORT: String(port + 1) };
    const cluster = new SampleCluster(group, {
      node,
      program,
      adapter,
      workers: WORKERS,
      port,
      env,
    });
    await cluster.serves();
    await use({
      group,
      cluster,
      ports: new Map(Object.entries({ worker: port, 'admin listener': port + 1 })),
    });
    await group.stop();
  });
}

async function sequential(port, count) {
  const took = [];
  for (let i = 0; i < count; i += 1) took.push((await scrapeOnce(port)).ms);
  return times(took);
}

async function parallel(servers, port, adminPort) {
  const cost = async (count) => {
    const before = servers.cpuSeconds();
    const pages = await Promise.all(Array.from({ length: count }, () => scrapeOnce(port)));
    return { pages, cpuSeconds: servers.cpuSeconds() - before };
  };
  const one = await cost(1);
  const all = await cost(AT_ONCE);
  await delay(1_100); // the primary reports its delay in the last full heartbeat interval
  const health = await fetch(`http://127.0.0.1:${adminPort}/health`);
  return {
    ...times(all.pages.map(({ ms }) => ms)),
    scrapeBytes: one.pages[0].bytes,
    cpuSecondsOfOne: one.cpuSeconds,
    cpuSecondsOfAll: all.cpuSeconds,
    primaryDelayP99Ms: (await health.json()).details.primary.eventLoopDelayP99Ms,
  };
}

async function scrapeOnce(port) {
  const begun = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, {
    headers: { connection: 'close', 'accept-encoding': 'identity' },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text.slice(0, 200)}`);
  return { ms: performance.now() - begun, bytes: text.length };
}

function times(took) {
  return { p50Ms: quantile(took, 0.5), p99Ms: quantile(took, 0.99), maxMs: Math.max(...took) };
}
