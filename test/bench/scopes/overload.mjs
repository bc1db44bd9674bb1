import { fileURLToPath } from 'node:url';
import { limitOfCores } from '../cores.mjs';
import { probe } from '../load/light-route.mjs';
import { answering, Servers } from '../processes.mjs';
import { median } from '../statistics.mjs';

const APP = fileURLToPath(new URL('../../../sample-app/dist/main.js', import.meta.url));
const PORT = 21_410;
const WORKERS = 2;
const PATHS = ['/offload/test', '/offload/coalesced/fib/35'];

/** As in the article: autocannon -c 1000 -d 10 -p 10. */
const LOAD = { connections: 1_000, pipelining: 10, duration: 10 };

/**
 * The third article's load on fibonacci(35), far above what two cores can do:
 * who is answered, who is refused, who times out, and what a light route
 * notices.
 */
export async function overload({ node, rounds, progress }) {
  const { default: autocannon } = await import('autocannon').catch(() => {
    throw new Error('autocannon is missing: npm ci --prefix test/bench');
  });
  const runs = Object.fromEntries(PATHS.map((path) => [path, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const path of PATHS) {
      const run = await measure({ autocannon, node, path });
      runs[path].push(run);
      progress(
        `round ${round + 1}/${rounds} ${path}: ${run.answered} answered (limit ${run.limit.toFixed(0)}, ${run.share.toFixed(2)}), ` +
          `${run.refused} refused, ${run.other} others, ${run.timeouts} timeouts, ${run.errors} errors; light p50 ${run.p50.toFixed(1)}, p99 ${run.p99.toFixed(1)}, max ${run.max.toFixed(0)} ms`,
      );
    }
  }
  return PATHS.map((path) => {
    const of = (key) => median(runs[path].map((run) => run[key]));
    const total = (key) => runs[path].reduce((sum, run) => sum + run[key], 0);
    return {
      path,
      answered: of('answered'),
      shareOfLimit: of('share'),
      refused: of('refused'),
      otherStatus: total('other'),
      withoutRetryAfter: total('bare'),
      timeouts: total('timeouts'),
      errors: total('errors'),
      lightP50Ms: of('p50'),
      lightP99Ms: of('p99'),
    };
  });
}

async function measure({ autocannon, node, path }) {
  const servers = new Servers();
  const url = `http://127.0.0.1:${PORT}`;
  try {
    servers.start(node, APP, {
      PORT: String(PORT),
      CLUSTER_WORKERS: String(WORKERS),
      CLUSTER_LOG_FORMAT: 'json',
    });
    await answering(`${url}/offload/fib/30`, 50);
    const before = await limitOfCores({ node, n: 35, cores: WORKERS, seconds: 3 });
    let bare = 0;
    const setupClient = (client) =>
      client.on('headers', ({ statusCode, headers }) => {
        // Names and values, one after the other.
        const named = headers.some((name) => /^retry-after$/i.test(name));
        if (statusCode === 503 && !named) bare += 1;
      });
    const [result, light] = await Promise.all([
      autocannon({ url: url + path, ...LOAD, setupClient }),
      probe(PORT, '/hello', LOAD.duration),
    ]);
    const after = await limitOfCores({ node, n: 35, cores: WORKERS, seconds: 3 });
    const limit = ((before + after) / 2) * LOAD.duration;
    const { 503: refused } = { 503: { count: 0 }, ...result.statusCodeStats };
    const answered = result['2xx'];
    return {
      answered,
      limit,
      share: answered / limit,
      refused: refused.count,
      other: result.non2xx - refused.count,
      bare,
      timeouts: result.timeouts,
      errors: result.errors - result.timeouts,
      p50: light.p50,
      p99: light.p99,
      max: light.max,
    };
  } finally {
    await servers.stop();
  }
}
