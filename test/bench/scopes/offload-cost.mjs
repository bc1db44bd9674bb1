import { fileURLToPath } from 'node:url';
import { answering } from '../load/ask.mjs';
import { ProcessGroup } from '../process-group.mjs';
import { median } from '../statistics.mjs';
import { loadUrl } from '../load/wrk.mjs';

const APP = fileURLToPath(new URL('../apps/offload.mjs', import.meta.url));
const PORT = 21_420;
/** Connections: one after the other, and many at once. */
const CONNECTIONS = [1, 16];
const ROUTES = ['plain', 'trivial', 'moved'];

/**
 * The cost of running a call in a thread: CPU per request of a route that does nothing, on the
 * event loop and in a thread, and of a route that moves a megabyte to the thread and back. Routes
 * take turns; figures are medians of the rounds.
 */
export async function offloadCost({ node, adapters, seconds, rounds, progress }) {
  const results = [];
  for (const adapter of adapters) {
    const servers = new ProcessGroup();
    try {
      servers.spawn(node, [APP], {
        env: {
          PORT: String(PORT),
          ADAPTER: adapter,
          CLUSTER_LOG_FORMAT: 'json',
        },
      });
      for (const route of ROUTES) await answering(`http://127.0.0.1:${PORT}/${route}`);
      for (const connections of CONNECTIONS) {
        const runs = Object.fromEntries(ROUTES.map((route) => [route, []]));
        // The first round is not counted: V8 compiles the code.
        for (let round = 0; round <= rounds; round += 1) {
          for (const route of ROUTES) {
            const micros = await measure(servers, route, { connections, seconds });
            if (round > 0) runs[route].push(micros);
          }
          progress(
            `${adapter}, ${connections} connections, round ${round}/${rounds}: ${ROUTES.map((route) => `${route} ${runs[route].at(-1)?.toFixed(1)} µs`).join(', ')}`,
          );
        }
        const above = (route) => median(runs[route].map((micros, i) => micros - runs.plain[i]));
        results.push({
          adapter,
          connections,
          plainMicros: median(runs.plain),
          trivialAboveMicros: above('trivial'),
          megabyteAboveMicros: above('moved'),
        });
      }
    } finally {
      await servers.stop();
    }
  }
  return results;
}

/** CPU per request, in µs. */
async function measure(servers, route, load) {
  const before = servers.cpuSeconds();
  const { requests, errors } = await loadUrl(`http://127.0.0.1:${PORT}/${route}`, load);
  if (errors > 0) throw new Error(`/${route}: ${errors} errors`);
  return ((servers.cpuSeconds() - before) / requests) * 1e6;
}
