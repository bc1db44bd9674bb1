import { wrk } from '../load/wrk.mjs';
import { EVERYBODY } from '../systems/index.mjs';
import { measureUsage } from '../usage.mjs';
import { compare } from './compare.mjs';

const WARM_UP_SECONDS = 5;
const LOADS = [
  { workers: 2, connections: 64 },
  { workers: 8, connections: 128 },
];

export const evenness = {
  name: 'evenness',
  title: 'Evenness of kept connections',
  about:
    'wrk on kept connections, GET /hello: CPU time of the busiest worker over the mean of all. 1 is even; with two workers 2 means that one of them does everything.',
  seconds: 5,
  rounds: 5,
  programs: ['wrk'],
  adapters: ['express'],
  parameters: { warmUpSeconds: WARM_UP_SECONDS, path: '/hello' },
  metric: 'busiestWorst',
  async rows(run) {
    const systems = run.pick(EVERYBODY.filter((name) => name !== 'one-process'));
    const rows = [];
    for (const { workers, connections } of LOADS) {
      const compared = await compare({
        run,
        group: `${workers} workers, ${connections} connections`,
        contestants: systems.map((system) => ({ system, workers })),
        // Eight workers are not warm after five seconds, so what a request costs is not said here.
        async measure(running) {
          const load = { path: '/hello', connections };
          await wrk(running, { ...load, seconds: WARM_UP_SECONDS });
          const used = measureUsage(running);
          const { requests, errors } = await wrk(running, { ...load, seconds: run.seconds });
          const { busiestRatio } = used(requests);
          return { errors, busiestRatio, busiestWorst: busiestRatio };
        },
      });
      rows.push(...compared);
    }
    return rows;
  },
};
