import { ProcessGroup } from '../process-group.mjs';
import { quantile } from '../statistics.mjs';
import { SampleCluster } from '../systems/sample-app.mjs';

const WORKERS = 8;
const SCRAPES = 300;

export const scrape = {
  name: 'scrape',
  title: 'A scrape of eight workers',
  about: `GET /metrics of the sample app with ${WORKERS} workers, of a worker and of the admin listener, one after the other: with all workers, and with a worker that was stopped by SIGSTOP.`,
  rounds: 1,
  adapters: ['express'],
  parameters: { workers: WORKERS, scrapes: SCRAPES },
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
      const cluster = new SampleCluster(group, { node, adapter, workers: WORKERS, port, env });
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
