import { loadtest } from '../load/loadtest.mjs';
import { measureUsage } from '../usage.mjs';
import { compare } from './compare.mjs';

const REQUESTS = 100;
const CONCURRENCY = 10;

export const slow = {
  name: 'slow',
  title: 'Article 2: a slow route',
  about:
    '"Why Node.js clustering is key for optimizing applications": `loadtest -n 100 -c 10` on `/slow`, which fills an array with 100,000 random numbers and sums their squares. No warm-up, as in the article: so the first requests are those of a process that has compiled nothing yet.',
  rounds: 3,
  adapters: ['express'],
  parameters: { tool: `loadtest -n ${REQUESTS} -c ${CONCURRENCY}`, path: '/slow' },
  metric: 'totalMs',
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
        'nestjs-cluster-cpu-bound',
        'one-process-cpu-bound',
      ]),
      async measure(running, { offload }) {
        const used = measureUsage(running);
        const result = await loadtest(running, {
          path: offload ? '/offload/slow' : '/slow',
          maxRequests: REQUESTS,
          concurrency: CONCURRENCY,
        });
        return { ...result, ...used(result.requests) };
      },
    });
  },
  found(rows) {
    return {
      article: 'Why Node.js clustering is key for optimizing applications',
      said: 'One process → node:cluster: about 100 s → 0.136 s for the 100 requests, longest 12 s → 41 ms. (An outlier: 100 such sums are not 100 s of work.)',
      measured: ['one-process', 'node-cluster-round-robin', 'node-cluster-shared', 'nestjs-cluster']
        .map((name) => rows.find(({ system }) => system === name))
        .filter((row) => row !== undefined && row.notRun === undefined)
        .map(
          (row) =>
            `${row.label}: ${Math.round(row.totalMs)} ms, longest ${Math.round(row.longestMs)} ms.`,
        )
        .join(' '),
    };
  },
};
