import { execFileSync } from 'node:child_process';
import { availableParallelism, setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { DEFAULTS, planCapacity } from '../../../dist/tools/plan/capacity-plan.js';
import { askMixed } from '../load/mixed.mjs';
import { askAtRandom } from '../load/random.mjs';
import { loadUrl } from '../load/wrk.mjs';
import { answering, Servers } from '../processes.mjs';
import { UsageError } from '../usage-error.mjs';

const APP = fileURLToPath(new URL('../../../sample-app/dist/main.js', import.meta.url));
const PORT = 21_440;
const CORE_OF_SERVER = 0;
const CORE_OF_CLIENTS = 1;

/** Threads stand back behind everything else on a core: others of this machine would take it. */
const PRIORITY = -15;

/** The first is for V8. */
const SECONDS_OF_WARM_UP = 3;

/** Of fibonacci(30), which computes as `/offload/fib/30` does, but on the event loop. */
const COMPUTED = { path: '/fib/30', connections: 2 };

/** What `tune` is asked about, and what then comes in at once. */
const SET_UPS = [
  { name: 'light', tuned: { path: '/hello', connections: 32 }, connections: 64 },
  {
    name: 'waits',
    // Enough of them to keep the event loop busy.
    tuned: { path: '/wait/40', connections: 512 },
    // At random times: connections that ask without pause do so together, and wait for each other.
    rps: 3_000,
    waitMs: 40,
  },
  {
    name: 'mixed',
    tuned: { path: '/hello', connections: 32 },
    connections: 16,
    offloaded: '/offload/fib/30',
    share: 0.05,
  },
];

/**
 * Whether `nestjs-cluster plan` is right. The CPU of a request is measured as `tune` does, then the
 * sample app runs on one core with the workers and threads of a plan, under connections that ask
 * without pause. The plan is asked for the load that this has made: what is full at once in the
 * light and the mixed set-up, and how many requests are in flight in the one that waits, whose
 * requests come at random times.
 */
export async function plan({ node, seconds, rounds, progress }) {
  if (availableParallelism() < 2 || process.getuid() !== 0) {
    throw new UsageError('--scope plan takes two cores, and root, to have them for itself');
  }
  pin(process.pid, CORE_OF_CLIENTS);
  const rows = [];
  for (const setUp of SET_UPS) {
    const row = await compare(setUp, { node, seconds, rounds });
    progress(JSON.stringify(row));
    rows.push(row);
  }
  return rows;
}

async function compare(setUp, { node, seconds, rounds }) {
  const { name, tuned, connections, rps: arriving, waitMs = 0, offloaded, share = 0 } = setUp;
  const costOf = async (load) =>
    await withCluster(node, { workers: 1, threads: 1 }, (servers) =>
      best(rounds, () => measure(servers, { ...load, seconds }), 'cpuMs', Math.min),
    );
  const { cpuMs } = await costOf(tuned);
  const offloadMs = offloaded === undefined ? 0 : (await costOf(COMPUTED)).cpuMs - cpuMs;

  const input = { ...DEFAULTS, cpuMs, waitMs, offloadMs, offloadShare: share, coresPerPod: 1 };
  const pathOf = offloaded && (() => (Math.random() < share ? offloaded : tuned.path));
  const measured = await withCluster(node, { workers: 1, threads: 1 }, async (servers) => {
    if (offloaded) await answering(`http://127.0.0.1:${PORT}${offloaded}`, 20);
    const load = { path: tuned.path, pathOf, connections, rps: arriving, seconds };
    return arriving === undefined
      ? best(rounds, () => measure(servers, load), 'requestsPerSecond', Math.max)
      : best(rounds, () => measure(servers, load), 'inFlight', Math.min);
  });

  const rps = measured.requestsPerSecond;
  const planned = planCapacity({ ...input, rps }, { ...input, utilization: 0.95 });
  const { limitRps } = planCapacity({ ...input, rps: 1 }, input);
  return {
    name,
    cpuMs,
    // Others of this machine may have had a part of the core: the limit is that of a whole one.
    offloadMs,
    requestsPerSecond: rps,
    ...(waitMs === 0
      ? ratioOf('limit', limitRps, rps / Math.min(1, measured.busyCores))
      : ratioOf('inFlight', planned.inFlight, measured.inFlight)),
    ...ratioOf('busyCores', planned.busyCores, measured.busyCores),
  };
}

function ratioOf(name, planned, measured) {
  return {
    [`${name}Planned`]: planned,
    [`${name}Measured`]: measured,
    [`${name}Ratio`]: planned / measured,
  };
}

/** Of some windows the one that others have disturbed least. */
async function best(rounds, run, key, choose) {
  const runs = [];
  for (let round = 0; round < rounds; round += 1) runs.push(await run());
  const value = choose(...runs.map((each) => each[key]));
  return runs.find((each) => each[key] === value);
}

async function measure(servers, { path, pathOf, connections, rps, seconds }) {
  const before = servers.cpuSeconds;
  const ask = async () => {
    if (rps !== undefined) return askAtRandom(PORT, path, { rps, seconds });
    if (pathOf) return askMixed(PORT, pathOf, { connections, seconds });
    return loadUrl(`http://127.0.0.1:${PORT}${path}`, { connections, seconds });
  };
  const { requests, errors, inFlight } = await ask();
  if (errors > 0) throw new Error(`${path}: ${errors} errors`);
  const cpuSeconds = servers.cpuSeconds - before;
  return {
    requestsPerSecond: requests / seconds,
    inFlight,
    busyCores: cpuSeconds / seconds,
    cpuMs: (cpuSeconds / requests) * 1_000,
  };
}

async function withCluster(node, { workers, threads }, use) {
  const servers = new Servers();
  try {
    servers.start(node, APP, {
      PORT: String(PORT),
      CLUSTER_WORKERS: String(workers),
      CLUSTER_THREADS: String(threads),
      CLUSTER_LOG_FORMAT: 'json',
    });
    for (const pid of servers.pids) pin(pid, CORE_OF_SERVER);
    const url = `http://127.0.0.1:${PORT}/hello`;
    await answering(url);
    await loadUrl(url, { connections: 16, seconds: SECONDS_OF_WARM_UP });
    return await use(servers);
  } finally {
    await servers.stop();
  }
}

/** Also what it starts from now on. */
function pin(pid, core) {
  setPriority(pid, PRIORITY);
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', String(core), String(pid)]);
}
