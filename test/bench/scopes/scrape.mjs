import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { answering } from '../load/ask.mjs';
import { ProcessGroup } from '../process-group.mjs';
import { percentile } from '../statistics.mjs';

const APP = fileURLToPath(new URL('../../../sample-app/dist/main.js', import.meta.url));
const MANY_SERIES = fileURLToPath(new URL('../apps/series.mjs', import.meta.url));
const PORT = 21_440;
const ADMIN_PORT = 21_441;
const WORKERS = '8';
const SCRAPES = 300;
const PARALLEL = 50;

/**
 * The time of a scrape of eight workers: with the default metrics, with a stopped worker, and with
 * 5,000 series and 50 scrapers at once.
 */
export async function scrape({ node, progress }) {
  const results = [];
  const report = (row) => {
    progress(JSON.stringify(row));
    results.push(row);
  };
  await withServers(node, APP, async (servers) => {
    for (const [from, port] of [
      ['worker', PORT],
      ['admin', ADMIN_PORT],
    ]) {
      await sequential(port, 100); // V8 compiles the hot code in each worker
      report({ what: 'default metrics', from, ...(await sequential(port, SCRAPES)) });
      const stopped = servers.pids().at(-1);
      process.kill(stopped, 'SIGSTOP');
      // A connection that the stopped worker has accepted waits for it: only the others are asked.
      if (from === 'admin') {
        report({ what: 'one worker stopped', from, ...(await sequential(port, 20)) });
      }
      process.kill(stopped, 'SIGCONT');
      await delay(2_000);
    }
  });
  await withServers(node, MANY_SERIES, async (servers) => {
    for (const [from, port] of [
      ['worker', PORT],
      ['admin', ADMIN_PORT],
    ]) {
      report({ what: '5,000 series', from, ...(await sequential(port, 30)) });
      report({
        what: `5,000 series, ${PARALLEL} at once`,
        from,
        ...(await parallel(servers, port)),
      });
    }
  });
  return results;
}

/** Runs `use` with a cluster that is up, and ends it. */
async function withServers(node, app, use) {
  const servers = new ProcessGroup();
  try {
    const env = {
      PORT: String(PORT),
      ADMIN_PORT: String(ADMIN_PORT),
      CLUSTER_WORKERS: WORKERS,
      CLUSTER_LOG_FORMAT: 'json',
    };
    const cluster = servers.spawn(node, [app], { env });
    await cluster.whileRunning(answering(`http://127.0.0.1:${PORT}/hello`, 100));
    await delay(3_000); // every worker is up
    await use(servers);
  } finally {
    await servers.stop();
  }
}

async function sequential(port, count) {
  const took = [];
  for (let i = 0; i < count; i += 1) took.push((await scrapeOnce(port)).ms);
  return times(took);
}

async function parallel(servers, port) {
  const before = servers.cpuSeconds();
  const one = await scrapeOnce(port);
  const costOfOne = servers.cpuSeconds() - before;
  const took = [];
  let costOfAll = 0;
  let delayMs = 0;
  const ROUNDS = 5;
  for (let round = 0; round < ROUNDS; round += 1) {
    const begun = servers.cpuSeconds();
    const pages = await Promise.all(Array.from({ length: PARALLEL }, () => scrapeOnce(port)));
    costOfAll += (servers.cpuSeconds() - begun) / ROUNDS;
    took.push(...pages.map(({ ms }) => ms));
    await delay(1_100); // the primary reports its delay in the last full heartbeat interval
    delayMs = Math.max(delayMs, await primaryDelayMs());
  }
  return {
    ...times(took),
    bytes: one.bytes,
    cpuSecondsOfOne: costOfOne,
    cpuSecondsOfAll: costOfAll,
    primaryDelayP99Ms: delayMs,
  };
}

async function scrapeOnce(port) {
  const begun = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, {
    headers: { connection: 'close', 'accept-encoding': 'identity' },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text.slice(0, 200)}`);
  return { ms: performance.now() - begun, bytes: text.length };
}

async function primaryDelayMs() {
  const response = await fetch(`http://127.0.0.1:${ADMIN_PORT}/health`);
  const { details } = await response.json();
  return details.primary.eventLoopDelayP99Ms;
}

function times(took) {
  return {
    scrapes: took.length,
    p50Ms: percentile(took, 0.5),
    p99Ms: percentile(took, 0.99),
    maxMs: Math.max(...took),
  };
}
