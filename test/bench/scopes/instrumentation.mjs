import { fileURLToPath } from 'node:url';
import { answering, Servers } from '../processes.mjs';
import { median } from '../statistics.mjs';
import { wrk } from '../wrk.mjs';

const APP = fileURLToPath(new URL('../apps/hello.mjs', import.meta.url));
const PORT = 21_450;

const MODES = {
  off: { metrics: false },
  on: {},
};

/**
 * What measuring each request costs: CPU per request of two workers with
 * metrics, against the same without. Interleaved, medians of rounds; each round
 * begins with the other one.
 */
export async function instrumentation({ node, adapters, seconds, rounds, progress }) {
  const results = [];
  for (const adapter of adapters) {
    const runs = { off: [], on: [] };
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? ['off', 'on'] : ['on', 'off'];
      for (const mode of order) {
        const run = await measure({ node, adapter, mode, seconds });
        runs[mode].push(run);
        progress(
          `${adapter} round ${round + 1}/${rounds} metrics ${mode}: ${run.toFixed(2)} µs/request`,
        );
      }
    }
    results.push({
      adapter,
      offMicros: median(runs.off),
      onMicros: median(runs.on),
      ratio: median(runs.on.map((micros, i) => micros / runs.off[i])),
      ratioOfMedians: median(runs.on) / median(runs.off),
    });
  }
  return results;
}

async function measure({ node, adapter, mode, seconds }) {
  const servers = new Servers();
  try {
    servers.start(node, APP, {
      ADAPTER: adapter,
      MODE: 'cluster',
      MODULE_OPTIONS: JSON.stringify(MODES[mode]),
      PORT: String(PORT),
      CLUSTER_LOG_FORMAT: 'json',
    });
    const url = `http://127.0.0.1:${PORT}/hello`;
    await answering(url);
    await wrk(url, { seconds: 2 }); // warm: V8 has compiled what is hot
    const before = servers.cpuSeconds;
    const load = await wrk(url, { seconds });
    return ((servers.cpuSeconds - before) / load.requests) * 1e6;
  } finally {
    await servers.stop();
  }
}
