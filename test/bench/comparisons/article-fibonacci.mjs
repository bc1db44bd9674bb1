import { autocannon } from '../load/autocannon.mjs';
import { probeApart } from '../load/light-route.mjs';
import { counted, measured } from '../report/metrics.mjs';
import { compare } from './compare.mjs';
import { heavyPath } from './mixed.mjs';

/** As in the article: autocannon -c 1000 -d 10 -p 10. */
const LOAD = { connections: 1_000, pipelining: 10, duration: 10 };

export const fibonacci = {
  name: 'fibonacci',
  title: 'Article 3: far more than the machine can do',
  about:
    '"Multi-process versus single process (pm2, autocannon)", a NestJS app: `autocannon -c 1000 -d 10 -p 10` on `/test`, fibonacci(35) in the request, with all, 2 and 1 workers: far more than two cores can compute. Besides, a light route, GET /hello, is asked every 10 ms; what is not answered counts with the time it waited. Refused is a 503 with Retry-After.',
  rounds: 1,
  adapters: ['express'],
  parameters: { tool: 'autocannon -c 1000 -d 10 -p 10', path: '/test' },
  metric: 'lightP99Ms',
  rows(run) {
    // All workers first, as by default: the report compares with the first row of a system.
    const counts = [...new Set([run.cores, 2, 1])];
    const many = run
      .pick(['pm2', 'nestjs-cluster', 'nestjs-cluster-cpu-bound'])
      .flatMap((system) =>
        counts.map((workers) => ({ system, workers, label: labelOf(system, workers) })),
      );
    const single = run
      .pick(['one-process', 'one-process-cpu-bound'])
      .map((system) => ({ system, workers: 1 }));
    return compare({
      run,
      contestants: [...many, ...single],
      async measure(running, { offload }) {
        const [heavy, light] = await Promise.all([
          autocannon(running, { path: heavyPath(offload), ...LOAD }),
          probeApart(running, { path: '/hello', seconds: LOAD.duration }),
        ]);
        const { requests, errors, latencyMeanMs } = heavy;
        return {
          answered: requests,
          heavyPerSecond: requests / LOAD.duration,
          latencyMeanMs,
          timeouts: errors.timeout,
          refused: errors.refused,
          ...light,
          errors,
        };
      },
    });
  },
  found(rows) {
    return {
      article: 'Multi-process versus single process (pm2, autocannon)',
      said: 'pm2 with 1, 8 and 2 processes: 2, 6.2 and 4 answers a second, latency 5,433, 9,683 and 3,884 ms on average, 10,000 timeouts each time.',
      measured: rows
        .filter(({ notRun }) => notRun === undefined)
        .map(
          (row) =>
            `${row.label}: ${row.heavyPerSecond.toFixed(1)} answers a second, ${counted(row.timeouts)} timeouts, ${counted(row.refused)} refused, light route p99 ${measured(row.lightP99Ms)} ms.`,
        )
        .join(' '),
    };
  },
};

function labelOf(system, workers) {
  const label = system.label({ workers });
  return system.name === 'pm2' ? label : `${label}, ${workers} worker${workers === 1 ? '' : 's'}`;
}
