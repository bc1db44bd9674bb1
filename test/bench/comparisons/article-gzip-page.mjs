import { autocannon } from '../load/autocannon.mjs';
import { measureUsage } from '../usage.mjs';
import { compare } from './compare.mjs';

const WARM_UP_SECONDS = 2;
const CONNECTIONS = 200;

export const gzipPage = {
  name: 'gzip-page',
  title: 'Article 1: a compressed page',
  about:
    '"Scaling Node.js Application with Cluster" (2022): `autocannon --connections 200` on a small HTML page, compressed by gzip. The article had one process and node:cluster with 8 workers on 8 cores; here there are as many workers as cores. After a server has closed a connection, autocannon starts its clock one request too early. nestjs-cluster closes connections to rebalance, so its latencies are shown longer than they were.',
  seconds: 10,
  rounds: 2,
  adapters: ['express'],
  parameters: { tool: `autocannon --connections ${CONNECTIONS}`, path: '/' },
  metric: 'requestsPerSecond',
  rows(run) {
    return compare({
      run,
      contestants: run.contestants([
        'one-process',
        'node-cluster-round-robin',
        'node-cluster-shared',
        'pm2',
        'watt',
        'nestjs-cluster',
      ]),
      async measure(running) {
        const load = {
          path: '/',
          connections: CONNECTIONS,
          headers: { 'accept-encoding': 'gzip' },
        };
        await autocannon(running, { ...load, duration: WARM_UP_SECONDS });
        const used = measureUsage(running);
        const result = await autocannon(running, { ...load, duration: run.seconds });
        return { ...result, ...used(result.requests) };
      },
    });
  },
  found(rows) {
    return {
      article: 'Scaling Node.js Application with Cluster (2022)',
      said: 'One process → node:cluster with 8 workers: 16,325 → 47,042 requests a second (2.9 times); latency 11.8 → 3.8 ms on average, 61 → 129 ms at most.',
      measured: gains(rows, ['node-cluster-round-robin', 'nestjs-cluster']),
    };
  },
};

function gains(rows, systems) {
  const one = rows.find(({ system }) => system === 'one-process');
  if (one === undefined || one.notRun !== undefined) return 'one process was not run';
  return systems
    .map((name) => rows.find(({ system }) => system === name))
    .filter((row) => row !== undefined && row.notRun === undefined)
    .map(
      (row) =>
        `One process → ${row.label}: ${rate(one)} → ${rate(row)} requests a second (${(row.requestsPerSecond / one.requestsPerSecond).toFixed(1)} times); latency ${one.latencyMeanMs.toFixed(1)} → ${row.latencyMeanMs.toFixed(1)} ms on average, ${Math.round(one.maxMs)} → ${Math.round(row.maxMs)} ms at most.`,
    )
    .join(' ');
}

function rate({ requestsPerSecond }) {
  return Math.round(requestsPerSecond).toLocaleString('en-US');
}
