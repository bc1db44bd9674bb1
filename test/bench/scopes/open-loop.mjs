import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { answering, Servers } from '../processes.mjs';
import { median } from '../statistics.mjs';

const APP = fileURLToPath(new URL('../../../sample-app/dist/main.js', import.meta.url));
const PORT = 21_350;
const MODES = ['shared', 'round-robin'];

/** Share of the workers' computing capacity that the requests use. */
const UTILIZATION = 0.6;

/**
 * Requests that compute fibonacci(30) on the event loop and arrive at random (Poisson), each on a
 * new connection. Shows the cost of a strategy that sends some requests to a busy worker.
 */
export async function openLoop({ node, seconds, rounds, progress }) {
  const runs = Object.fromEntries(MODES.map((mode) => [mode, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const mode of MODES) {
      const run = await measure({ node, mode, seconds });
      runs[mode].push(run);
      progress(
        `round ${round + 1}/${rounds} ${mode}: ${run.answered} answered at ${run.rate.toFixed(0)}/s, p50 ${run.p50.toFixed(1)} ms, p99 ${run.p99.toFixed(1)} ms, ${run.errors} errors`,
      );
    }
  }
  return MODES.map((mode) => ({
    mode,
    p50: median(runs[mode].map((run) => run.p50)),
    p99: median(runs[mode].map((run) => run.p99)),
    p99ToRoundRobin: median(runs[mode].map((run, i) => run.p99 / runs['round-robin'][i].p99)),
    errors: runs[mode].reduce((sum, run) => sum + run.errors, 0),
  }));
}

async function measure({ node, mode, seconds }) {
  const servers = new Servers();
  const url = `http://127.0.0.1:${PORT}/fib/30`;
  try {
    servers.start(node, APP, {
      PORT: String(PORT),
      CLUSTER_WORKERS: '2',
      CLUSTER_BALANCING: mode,
      CLUSTER_LOG_FORMAT: 'json',
    });
    await answering(url, 100); // V8 has compiled it on both
    const serviceMs = await alone(url);
    const rate = (UTILIZATION * 2 * 1_000) / serviceMs;
    return { rate, ...(await arrivals(url, rate, seconds)) };
  } finally {
    await servers.stop();
  }
}

/** Median time of a request while no other request is served. */
async function alone(url) {
  const times = [];
  for (let i = 0; i < 50; i += 1) times.push(await request(url));
  return median(times);
}

async function arrivals(url, ratePerSecond, seconds) {
  const times = [];
  let errors = 0;
  const pending = new Set();
  const end = performance.now() + seconds * 1_000;
  for (let next = performance.now(); next < end;) {
    next += (-Math.log(1 - Math.random()) * 1_000) / ratePerSecond;
    const wait = next - performance.now();
    if (wait > 0) await delay(wait);
    const asked = request(url).then(
      (ms) => times.push(ms),
      () => (errors += 1),
    );
    pending.add(asked);
    void asked.finally(() => pending.delete(asked));
  }
  await Promise.all(pending);
  times.sort((a, b) => a - b);
  const quantile = (q) => times[Math.min(times.length - 1, Math.floor(q * times.length))];
  return { answered: times.length, errors, p50: quantile(0.5), p99: quantile(0.99) };
}

/** One request on a connection of its own; resolves with what it took, in ms. */
function request(url) {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    http
      .get(url, { agent: false }, (response) => {
        response.resume().on('end', () => {
          if (response.statusCode === 200) resolve(performance.now() - startedAt);
          else reject(new Error(`status ${response.statusCode}`));
        });
      })
      .on('error', reject);
  });
}
