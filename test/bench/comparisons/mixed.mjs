import { probeApart } from '../load/light-route.mjs';
import { wrk } from '../load/wrk.mjs';
import { compare } from './compare.mjs';

const CLIENTS = 16;

export const mixed = {
  name: 'mixed',
  title: 'Heavy and light requests together',
  about:
    '16 clients ask for fibonacci(35) without pause, on kept connections; a light route, GET /hello, is asked every 10 ms. What is not answered counts with the time it waited.',
  seconds: 10,
  rounds: 3,
  programs: ['wrk'],
  adapters: ['express'],
  parameters: { clients: CLIENTS },
  metric: 'lightP99Ms',
  rows(run) {
    return compare({
      run,
      contestants: run.contestants([
        'one-process',
        'node-cluster-round-robin',
        'node-cluster-shared',
        'reuse-port',
        'pm2',
        'watt',
        'nestjs-cluster',
        'nestjs-cluster-cpu-bound',
        'one-process-cpu-bound',
      ]),
      async measure(running, { offload }) {
        const path = heavyPath(offload);
        const { seconds } = run;
        const [heavy, light] = await Promise.all([
          wrk(running, { path, connections: CLIENTS, seconds, timeoutSeconds: 30 }),
          probeApart(running, { path: '/hello', seconds }),
        ]);
        return { heavyPerSecond: heavy.requestsPerSecond, ...light, errors: heavy.errors };
      },
    });
  },
};

export function heavyPath(offload) {
  return offload ? '/offload/test' : '/test';
}
