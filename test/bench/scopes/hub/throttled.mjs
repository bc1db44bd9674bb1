import { loadUrl } from '../../load/wrk.mjs';
import { median } from '../../statistics.mjs';
import { cpuOfNothing, summary } from './operations.mjs';
import { SharedCluster } from './shared-cluster.mjs';

const ROUTES = ['none', 'memory', 'hub', 'redis'];
const CONNECTIONS = 64;

/** Requests of routes that differ by the storage of their throttler alone, in turn, at full speed. */
export async function compareThrottlers({ node, workers, adapters, rounds, windowMs, progress }) {
  const rows = [];
  for (const adapter of adapters) {
    const options = { node, workers, parts: ['throttler'], env: { ADAPTER: adapter } };
    rows.push(
      ...(await SharedCluster.with(options, async (cluster) => {
        const idle = await cpuOfNothing(cluster);
        const windows = new Map(ROUTES.map((route) => [route, []]));
        for (let round = -1; round <= rounds; round += 1) {
          for (const route of round % 2 === 0 ? ROUTES : ROUTES.toReversed()) {
            const window = await measure(cluster, route, windowMs, idle);
            if (round > 0) windows.get(route).push(window);
          }
          progress(`throttler, ${adapter}: round ${round}/${rounds}`);
        }
        const over = (route, base) =>
          median(
            windows.get(route).map((each, i) => each.cpuMicros - windows.get(base)[i].cpuMicros),
          );
        return ROUTES.map((route) => ({
          part: 'throttler',
          work: `a request, ${adapter}`,
          load: `${CONNECTIONS} connections`,
          system: route,
          ...summary(windows.get(route)),
          overMemoryMicros: over(route, 'memory'),
        }));
      })),
    );
  }
  return rows;
}

async function measure(cluster, route, ms, idle) {
  await cluster.delays();
  const startedAt = performance.now();
  const { result, seconds } = await cluster.cpuWhile(() =>
    Promise.all(
      cluster.ports.map((port) =>
        loadUrl(`http://127.0.0.1:${port}/${route}`, {
          connections: CONNECTIONS / cluster.ports.length,
          seconds: ms / 1_000,
        }),
      ),
    ),
  );
  const tookMs = performance.now() - startedAt;
  const requests = result.reduce((sum, each) => sum + each.requests, 0);
  return {
    cpuMicros: ((seconds - idle * tookMs) / requests) * 1e6,
    perSecond: result.reduce((sum, each) => sum + each.requestsPerSecond, 0),
    p50Ms: median(result.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...result.map(({ p99Ms }) => p99Ms)),
    failed: result.reduce((sum, { errors }) => sum + errors, 0),
    ...(await cluster.delays()),
  };
}
