import { warmUp, wrk } from '../load/wrk.mjs';
import { measureUsage } from '../usage.mjs';
import { compare } from './compare.mjs';

const CONNECTIONS = 50;
export const steady = {
  name: 'steady',
  title: 'Article 4: cluster, iptables and nginx',
  about:
    '"Node.js process load balancing: comparing cluster, iptables and Nginx" (Node 6): a steady load of some minutes (`--seconds 300` for the whole of it), requests answered, their distribution over the processes, memory of primary or proxy and of the workers. Here: wrk on 50 kept connections, GET /hello.',
  seconds: 15,
  rounds: 2,
  programs: ['wrk'],
  adapters: ['express'],
  parameters: { tool: `wrk -c ${CONNECTIONS}`, path: '/hello' },
  metric: 'requestsPerSecond',
  rows(run) {
    return compare({
      run,
      contestants: run.contestants([
        'node-cluster-round-robin',
        'iptables',
        'nginx',
        'nestjs-cluster',
        'nestjs-cluster-iptables',
      ]),
      async measure(running) {
        const load = { path: '/hello', connections: CONNECTIONS };
        await warmUp(running, load);
        const used = measureUsage(running);
        const result = await wrk(running, { ...load, seconds: run.seconds });
        return { ...result, ...used(result.requests) };
      },
    });
  },
  found(rows) {
    const of = (name) => rows.find(({ system, notRun }) => system === name && notRun === undefined);
    const iptables = of('iptables');
    return {
      article: 'Node.js process load balancing: comparing cluster, iptables and Nginx',
      said: "iptables answered 5.8 % more than node:cluster and 1.6 % more than nginx; cluster's primary used three times the memory of the others' and worked almost as hard as a worker; iptables spread perfectly.",
      measured: [
        ...['node-cluster-round-robin', 'nginx', 'nestjs-cluster'].flatMap((name) =>
          iptables && of(name) ? [more(iptables, of(name))] : [],
        ),
        ...rows.filter(({ notRun }) => notRun === undefined).map(share),
      ].join(' '),
    };
  },
};

function more(row, other) {
  const percent = (row.requestsPerSecond / other.requestsPerSecond - 1) * 100;
  return `${row.label} answered ${Math.abs(percent).toFixed(1)} % ${percent < 0 ? 'less' : 'more'} than ${other.label}.`;
}

function share({ label, primaryCpuShare, frontRssBytes, busiestRatio }) {
  const primary =
    frontRssBytes === undefined
      ? 'nothing in front'
      : `primary or proxy ${(frontRssBytes / 1e6).toFixed(0)} MB and ${(primaryCpuShare * 100).toFixed(1)} % of the CPU`;
  return `${label}: ${primary}, busiest worker ${busiestRatio.toFixed(2)} times the mean.`;
}
