import { autocannon } from '../load/autocannon.mjs';
import { probeApart } from '../load/light-route.mjs';
import { loadtest } from '../load/loadtest.mjs';
import { warmUp, wrk } from '../load/wrk.mjs';
import { heavyPath } from '../systems/index.mjs';
import { measureUsage } from '../usage.mjs';
import { compare } from './compare.mjs';

const gzipPage = {
  name: 'gzip-page',
  title: 'Article 1: a compressed page',
  about:
    '"Scaling Node.js Application with Cluster" (2022): `autocannon --connections 200` on a small HTML page, compressed by gzip. The article had one process and node:cluster with 8 workers on 8 cores; here there are as many workers as cores. After a server has closed a connection, autocannon starts its clock one request too early. nestjs-cluster closes connections to rebalance, so its latencies are shown longer than they were.',
  said: 'One process → node:cluster with 8 workers: 16,325 → 47,042 requests a second (2.9 times); latency 11.8 → 3.8 ms on average, 61 → 129 ms at most.',
  seconds: 10,
  rounds: 2,
  adapters: ['express'],
  parameters: { tool: 'autocannon --connections 200', path: '/' },
  metric: 'requestsPerSecond',
  systems: [
    'one-process',
    'node-cluster-round-robin',
    'node-cluster-shared',
    'pm2',
    'watt',
    'nestjs-cluster',
  ],
  async measure(running, _settings, run) {
    const load = { path: '/', connections: 200, headers: { 'accept-encoding': 'gzip' } };
    await autocannon(running, { ...load, duration: 2 });
    const used = measureUsage(running);
    const result = await autocannon(running, { ...load, duration: run.seconds });
    return { ...result, ...used(result.requests) };
  },
};

const slow = {
  name: 'slow',
  title: 'Article 2: a slow route',
  about:
    '"Why Node.js clustering is key for optimizing applications": `loadtest -n 100 -c 10` on `/slow`, which fills an array with 100,000 random numbers and sums their squares. No warm-up, as in the article, but the load begins when the system is at rest: so the first requests are those of a process that has compiled nothing yet.',
  said: 'One process → node:cluster: about 100 s → 0.136 s for the 100 requests, longest 12 s → 41 ms. (An outlier: 100 such sums are not 100 s of work.)',
  rounds: 3,
  adapters: ['express'],
  parameters: { tool: 'loadtest -n 100 -c 10', path: '/slow' },
  metric: 'totalMs',
  systems: [...gzipPage.systems, 'nestjs-cluster-cpu-bound', 'one-process-cpu-bound'],
  async measure(running, { offload }) {
    const used = measureUsage(running);
    const path = offload ? '/offload/slow' : '/slow';
    const result = await loadtest(running, { path, maxRequests: 100, concurrency: 10 });
    return { ...result, ...used(result.requests) };
  },
};

/** As in the article. */
const FLOOD = { connections: 1_000, pipelining: 10, duration: 10 };

const fibonacci = {
  name: 'fibonacci',
  title: 'Article 3: far more than the machine can do',
  about:
    '"Multi-process versus single process (pm2, autocannon)", a NestJS app: `autocannon -c 1000 -d 10 -p 10` on `/test`, fibonacci(35) in the request, with all, 2 and 1 workers: far more than two cores can compute. Besides, a light route, GET /hello, is asked every 10 ms; what is not answered counts with the time it waited. Refused is a 503 with Retry-After.',
  said: 'pm2 with 1, 8 and 2 processes: 2, 6.2 and 4 answers a second, latency 5,433, 9,683 and 3,884 ms on average, 10,000 timeouts each time.',
  rounds: 1,
  adapters: ['express'],
  parameters: { tool: 'autocannon -c 1000 -d 10 -p 10', path: '/test' },
  metric: 'lightP99Ms',
  contestants(run) {
    // All workers first, as by default: the report compares with the first row of a system.
    const counts = [...new Set([run.cores, 2, 1])];
    const many = run
      .pick(['pm2', 'nestjs-cluster', 'nestjs-cluster-cpu-bound'])
      .flatMap((system) =>
        counts.map((workers) => ({ system, workers, label: labelOf(system, workers) })),
      );
    const single = run.pick(['one-process', 'one-process-cpu-bound']);
    return [...many, ...single.map((system) => ({ system, workers: 1 }))];
  },
  async measure(running, { offload }) {
    const [heavy, light] = await Promise.all([
      autocannon(running, { path: heavyPath(offload), ...FLOOD }),
      probeApart(running, { path: '/hello', seconds: FLOOD.duration }),
    ]);
    const { requests, errors, latencyMeanMs } = heavy;
    return {
      answered: requests,
      heavyPerSecond: requests / FLOOD.duration,
      latencyMeanMs,
      timeouts: errors.timeout,
      refused: errors.refused,
      ...light,
      errors,
    };
  },
};

function labelOf(system, workers) {
  const label = system.label({ workers });
  return system.name === 'pm2' ? label : `${label}, ${workers} worker${workers === 1 ? '' : 's'}`;
}

const steady = {
  name: 'steady',
  title: 'Article 4: cluster, iptables and nginx',
  about:
    '"Node.js process load balancing: comparing cluster, iptables and Nginx" (Node 6): a steady load of some minutes (`--seconds 300` for the whole of it), requests answered, their distribution over the processes, memory of primary or proxy and of the workers. Here: wrk on 50 kept connections, GET /hello.',
  said: "iptables answered 5.8 % more than node:cluster and 1.6 % more than nginx; cluster's primary used three times the memory of the others' and worked almost as hard as a worker; iptables spread perfectly.",
  seconds: 15,
  rounds: 2,
  programs: ['wrk'],
  adapters: ['express'],
  parameters: { tool: 'wrk -c 50', path: '/hello' },
  metric: 'requestsPerSecond',
  systems: ['node-cluster-round-robin', 'iptables', 'nginx', 'nestjs-cluster'],
  async measure(running, _settings, run) {
    const load = { path: '/hello', connections: 50 };
    await warmUp(running, load);
    const used = measureUsage(running);
    const result = await wrk(running, { ...load, seconds: run.seconds });
    return { ...result, ...used(result.requests) };
  },
};

/** The workloads of the articles that started this project. */
export const ARTICLES = [gzipPage, slow, fibonacci, steady].map((article) => ({
  rows: (run) => {
    const contestants = article.contestants?.(run) ?? run.contestants(article.systems);
    const measure = (running, settings) => article.measure(running, settings, run);
    return compare({ run, contestants, measure });
  },
  ...article,
}));
