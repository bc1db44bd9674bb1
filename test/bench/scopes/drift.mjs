import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { between, busiestToMean, readWorkers, sum } from '../cluster-metrics.mjs';
import { answering, Servers } from '../processes.mjs';
import { loadUrl } from '../load/wrk.mjs';

const APP = fileURLToPath(new URL('../apps/hello.mjs', import.meta.url));
const PORT = 21_380;
const SAMPLE_SECONDS = 30;

/** From then on the cluster is taken to be balanced. */
const SETTLE_SECONDS = 10;

/**
 * A steady load on 64 kept connections and two workers: whether the shares
 * drift, and how many clients are asked to connect again once all is balanced.
 * `--seconds 600` for the whole of it.
 */
export async function drift({ node, adapters, seconds, progress }) {
  const results = [];
  for (const adapter of adapters) results.push(await measure({ node, adapter, seconds, progress }));
  return results;
}

async function measure({ node, adapter, seconds, progress }) {
  const servers = new Servers();
  const base = `http://127.0.0.1:${PORT}`;
  try {
    servers.start(node, APP, {
      ADAPTER: adapter,
      PORT: String(PORT),
      CLUSTER_LOG_FORMAT: 'json',
    });
    await answering(`${base}/hello`);
    const load = loadUrl(`${base}/hello`, {
      connections: 64,
      seconds: SETTLE_SECONDS + seconds + 2,
    });
    await delay(SETTLE_SECONDS * 1_000);
    const first = await readWorkers(base);
    const busiest = [];
    let last = first;
    for (let at = 0; at < seconds; at += SAMPLE_SECONDS) {
      await delay(Math.min(SAMPLE_SECONDS, seconds - at) * 1_000);
      const next = await readWorkers(base);
      busiest.push(busiestToMean(between(last.requests, next.requests)));
      progress(`${adapter} ${at + SAMPLE_SECONDS} s: busiest ${busiest.at(-1).toFixed(3)}`);
      last = next;
    }
    const { errors } = await load;
    const requests = sum(between(first.requests, last.requests).values());
    const rebalanced = sum(between(first.rebalanced, last.rebalanced).values());
    return {
      adapter,
      seconds,
      requests,
      errors,
      busiestToMean: busiestToMean(between(first.requests, last.requests)),
      busiestSample: Math.max(...busiest),
      rebalanced,
      rebalancedPer1000: (1_000 * rebalanced) / requests,
    };
  } finally {
    await servers.stop();
  }
}
