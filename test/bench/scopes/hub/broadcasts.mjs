import { once } from 'node:events';
import { io } from 'socket.io-client';
import { median, percentile } from '../../statistics.mjs';
import { monotonicMs } from '../../apps/shared/monotonic.mjs';
import { cpuOfNothing, summary } from './operations.mjs';
import { SharedCluster } from './shared-cluster.mjs';

const CLIENTS_OF_EACH_WORKER = 10;
const SYSTEMS = ['hub', 'redis'];

/** One worker broadcasts to the clients of all, every 5 ms; what clients cost is not counted. */
export async function compareBroadcasts({ node, workers, rounds, windowMs, progress }) {
  const options = { node, workers, parts: ['socket.io'] };
  return SharedCluster.with(options, async (cluster) => {
    const heard = { hub: [], redis: [] };
    const clients = await connectAll(cluster, heard);
    const windows = { hub: [], redis: [] };
    const idle = await cpuOfNothing(cluster);
    for (let round = 0; round <= rounds; round += 1) {
      for (const system of round % 2 === 0 ? SYSTEMS : SYSTEMS.toReversed()) {
        const window = await measure(cluster, system, heard, clients.length / 2, windowMs, idle);
        if (round > 0) windows[system].push(window);
      }
      progress(`socket.io: round ${round}/${rounds}`);
    }
    for (const client of clients) client.disconnect();
    return SYSTEMS.map((system) => ({
      part: 'socket.io',
      work: `a broadcast to ${clients.length / 2} clients`,
      load: 'every 5 ms, of one worker',
      system,
      ...summary(windows[system]),
    }));
  });
}

async function connectAll(cluster, heard) {
  const clients = [];
  for (const system of SYSTEMS) {
    for (const port of cluster.ports) {
      for (let n = 0; n < CLIENTS_OF_EACH_WORKER; n += 1) {
        const client = io(`http://127.0.0.1:${port}`, {
          path: `/${system}.io`,
          transports: ['websocket'],
          forceNew: true,
        });
        client.on('told', ({ at }) => heard[system].push(monotonicMs() - at));
        clients.push(client);
      }
    }
  }
  await Promise.all(
    clients.map((client) => (client.connected ? Promise.resolve() : once(client, 'connect'))),
  );
  return clients;
}

async function measure(cluster, system, heard, clients, ms, idle) {
  heard[system].length = 0;
  await cluster.delays();
  const startedAt = performance.now();
  const { result, seconds } = await cluster.cpuWhile(async () => {
    const [run] = await cluster.run(`broadcast ${system}`, { ms, at: 1, workers: 1 });
    const until = performance.now() + 1_000;
    while (heard[system].length < run.count * clients && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return run;
  });
  const tookMs = performance.now() - startedAt;
  return {
    cpuMicros: ((seconds - idle * tookMs) / result.count) * 1e6,
    perSecond: (result.count / tookMs) * 1e3,
    p50Ms: median(heard[system]),
    p99Ms: percentile(heard[system], 0.99),
    failed: result.count * clients - heard[system].length,
    ...(await cluster.delays()),
  };
}
