import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { between, busiestToMean, readWorkers, sum } from '../cluster-metrics.mjs';
import { answering } from '../load/ask.mjs';
import { ProcessGroup } from '../process-group.mjs';
import { median } from '../statistics.mjs';
import { loadUrl } from '../load/wrk.mjs';

const APP = fileURLToPath(new URL('../apps/hello.mjs', import.meta.url));
const PORT = 21_330;

/** From then on the cluster is measured: V8 has compiled what is hot, and rebalance has had its time. */
const SETTLE_SECONDS = 5;

const MODES = {
  shared: { balancing: 'shared' },
  'shared, no rebalance': { balancing: 'shared', rebalance: false },
  'reuse-port': { balancing: 'reuse-port' },
  'round-robin': { balancing: 'round-robin' },
};

const LOADS = [
  { workers: 2, connections: 64, newConnections: false },
  { workers: 8, connections: 128, newConnections: false },
  { workers: 2, connections: 64, newConnections: true },
];

/**
 * The CPU cost of a request with each balancing strategy, and how evenly the strategy spreads
 * requests. Strategies take turns. Figures are medians of the rounds; the evenness is the worst.
 */
export async function balance({ node, adapters, seconds, rounds, progress }) {
  const results = [];
  for (const adapter of adapters) {
    for (const load of LOADS) {
      const runs = Object.fromEntries(Object.keys(MODES).map((mode) => [mode, []]));
      for (let round = 0; round < rounds; round += 1) {
        for (const [mode, options] of Object.entries(MODES)) {
          const run = await measure({ node, adapter, ...load, options, seconds });
          runs[mode].push(run);
          progress(
            `${adapter} ${describe(load)} round ${round + 1}/${rounds} ${mode}: ${run.cpuMicros.toFixed(1)} µs/request, ` +
              `${Math.round(run.requestsPerSecond)}/s, busiest ${run.busiest.toFixed(3)}, ${run.rebalanced} asked to reconnect, ${run.errors} errors`,
          );
        }
      }
      for (const [mode, measured] of Object.entries(runs)) {
        results.push({
          adapter,
          load: describe(load),
          mode,
          cpuMicros: median(measured.map((run) => run.cpuMicros)),
          ...ratios(measured, runs),
          busiestToMean: Math.max(...measured.map((run) => run.busiest)),
          requestsPerSecond: Math.round(median(measured.map((run) => run.requestsPerSecond))),
          rebalancedPer1000:
            (1_000 * sum(measured.map((run) => run.rebalanced))) /
            sum(measured.map((run) => run.requests)),
          errors: sum(measured.map((run) => run.errors)),
        });
      }
    }
  }
  return results;
}

/** Each round against its neighbours: drift of the machine cancels out. */
function ratios(measured, runs) {
  const over = (mode) =>
    runs[mode] && median(measured.map((run, i) => run.cpuMicros / runs[mode][i].cpuMicros));
  return { toUnbalanced: over('shared, no rebalance'), toRoundRobin: over('round-robin') };
}

function describe({ workers, connections, newConnections }) {
  return `${workers} workers, ${connections} ${newConnections ? 'clients, new connection each' : 'kept connections'}`;
}

async function measure({ node, adapter, workers, connections, newConnections, options, seconds }) {
  const servers = new ProcessGroup();
  const base = `http://127.0.0.1:${PORT}`;
  try {
    const cluster = servers.spawn(node, [APP], {
      env: {
        ADAPTER: adapter,
        PORT: String(PORT),
        WORKERS: String(workers),
        OPTIONS: JSON.stringify(options),
        CLUSTER_LOG_FORMAT: 'json',
      },
    });
    await cluster.whileRunning(answering(`${base}/hello`));
    await allReady(base, workers);
    const load = loadUrl(`${base}/hello`, {
      connections,
      seconds: SETTLE_SECONDS + seconds + 1,
      newConnections,
    });
    await delay(SETTLE_SECONDS * 1_000);
    const before = await readWorkers(base);
    const cpuBefore = servers.cpuSeconds();
    await delay(seconds * 1_000);
    const cpuSeconds = servers.cpuSeconds() - cpuBefore;
    const after = await readWorkers(base);
    const { errors } = await load;
    const requests = between(before.requests, after.requests);
    const total = sum(requests.values());
    return {
      requests: total,
      requestsPerSecond: total / seconds,
      cpuMicros: (cpuSeconds / total) * 1e6,
      busiest: busiestToMean(requests),
      rebalanced: sum(between(before.rebalanced, after.rebalanced).values()),
      errors,
    };
  } finally {
    await servers.stop();
  }
}

async function allReady(base, workers) {
  for (;;) {
    const health = await (
      await fetch(`${base}/health`, { headers: { connection: 'close' } })
    ).json();
    if (health.details.cluster.ready === workers) return;
    await delay(50);
  }
}
