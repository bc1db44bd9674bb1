import { fileURLToPath } from 'node:url';
import { answering, Servers } from '../processes.mjs';
import { median } from '../statistics.mjs';
import { loadUrl } from '../load/wrk.mjs';

const APP = fileURLToPath(new URL('../apps/hello.mjs', import.meta.url));
const BASE_PORT = 21_300;

/**
 * What everything this package does costs a request: CPU per request of two
 * workers with metrics, health and reporting on, against a bare Nest app in
 * two processes on one `reusePort`. Interleaved, medians of rounds.
 */
export async function overhead({ node, adapters, seconds, rounds, progress }) {
  const results = [];
  for (const adapter of adapters) {
    for (const newConnections of [false, true]) {
      const runs = { bare: [], cluster: [] };
      for (let round = 0; round < rounds; round += 1) {
        for (const mode of ['bare', 'cluster']) {
          const run = await measure({ node, adapter, mode, newConnections, seconds });
          runs[mode].push(run);
          progress(
            `${adapter} ${newConnections ? 'new connections' : 'keep-alive'} round ${round + 1}/${rounds} ${mode}: ` +
              `${run.cpuMicrosPerRequest.toFixed(1)} µs/request, ${Math.round(run.requestsPerSecond)}/s, ${run.errors} errors`,
          );
        }
      }
      const cpu = (mode) => median(runs[mode].map((run) => run.cpuMicrosPerRequest));
      results.push({
        adapter,
        connections: newConnections ? 'new' : 'keep-alive',
        bareMicros: cpu('bare'),
        clusterMicros: cpu('cluster'),
        // Each round against its neighbour: drift of the machine cancels out.
        ratio: median(
          runs.cluster.map((run, i) => run.cpuMicrosPerRequest / runs.bare[i].cpuMicrosPerRequest),
        ),
        errors: [...runs.bare, ...runs.cluster].reduce((sum, run) => sum + run.errors, 0),
      });
    }
  }
  return results;
}

async function measure({ node, adapter, mode, newConnections, seconds }) {
  const port = BASE_PORT + (mode === 'bare' ? 0 : 1);
  const servers = new Servers();
  try {
    for (let i = 0; i < (mode === 'bare' ? 2 : 1); i += 1) {
      servers.start(node, APP, {
        ADAPTER: adapter,
        MODE: mode,
        PORT: String(port),
        CLUSTER_LOG_FORMAT: 'json',
      });
    }
    const url = `http://127.0.0.1:${port}/hello`;
    await answering(url);
    await loadUrl(url, { seconds: 2, newConnections }); // warm: V8 has compiled what is hot
    const before = servers.cpuSeconds;
    const load = await loadUrl(url, { seconds, newConnections });
    const cpuMicrosPerRequest = ((servers.cpuSeconds - before) / load.requests) * 1e6;
    return { ...load, cpuMicrosPerRequest };
  } finally {
    await servers.stop();
  }
}
