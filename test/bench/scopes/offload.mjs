import { fileURLToPath } from 'node:url';
import { limitOfCores } from '../cores.mjs';
import { probe } from '../load/light-route.mjs';
import { answering } from '../load/ask.mjs';
import { ProcessGroup } from '../process-group.mjs';
import { median } from '../statistics.mjs';
import { loadUrl } from '../load/wrk.mjs';

const APP = fileURLToPath(new URL('../../../sample-app/dist/main.js', import.meta.url));
const PORT = 21_400;
const WORKERS = 2;
const CLIENTS = 16;
const MODES = ['threads', 'inline'];

/**
 * 16 clients ask for fibonacci(30) without pause while a light route is asked
 * every 10 ms: what of two cores gets into answers, and what the light route
 * notices. With `@CpuBound()` in threads, and on the event loop. The cores'
 * limit is measured before and after each run.
 */
export async function offload({ node, seconds, rounds, progress }) {
  const runs = Object.fromEntries(MODES.map((mode) => [mode, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const mode of MODES) {
      const run = await measure({ node, mode, seconds });
      runs[mode].push(run);
      progress(
        `round ${round + 1}/${rounds} ${mode}: ${run.rate.toFixed(0)}/s of ${run.limit.toFixed(0)}/s (${run.share.toFixed(3)}), ` +
          `light p50 ${run.p50.toFixed(1)}, p99 ${run.p99.toFixed(1)}, max ${run.max.toFixed(1)} ms, ${run.errors} errors`,
      );
    }
  }
  return MODES.map((mode) => {
    const of = (key) => median(runs[mode].map((run) => run[key]));
    return {
      mode,
      perSecond: of('rate'),
      shareOfLimit: of('share'),
      lightP50Ms: of('p50'),
      lightP99Ms: of('p99'),
      lightMaxMs: Math.max(...runs[mode].map((run) => run.max)),
      errors: runs[mode].reduce((sum, run) => sum + run.errors, 0),
    };
  });
}

async function measure({ node, mode, seconds }) {
  const servers = new ProcessGroup();
  const url = `http://127.0.0.1:${PORT}/offload/fib/30`;
  try {
    const cluster = servers.spawn(node, [APP], {
      env: {
        PORT: String(PORT),
        CLUSTER_WORKERS: String(WORKERS),
        CLUSTER_OFFLOAD: mode,
        CLUSTER_LOG_FORMAT: 'json',
      },
    });
    await cluster.whileRunning(answering(url, 50)); // V8 has compiled it in all threads
    const before = await limitOfCores({ node, n: 30, cores: WORKERS, seconds: 3 });
    const [load, light] = await Promise.all([
      loadUrl(url, { connections: CLIENTS, seconds }),
      probe(PORT, '/hello', seconds),
    ]);
    const after = await limitOfCores({ node, n: 30, cores: WORKERS, seconds: 3 });
    const limit = (before + after) / 2;
    const rate = load.requestsPerSecond;
    return {
      rate,
      limit,
      share: rate / limit,
      errors: load.errors + light.unanswered,
      ...pick(light),
    };
  } finally {
    await servers.stop();
  }
}

function pick({ p50, p99, max }) {
  return { p50, p99, max };
}
