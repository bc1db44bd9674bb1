import { fileURLToPath } from 'node:url';
import { warmUp, wrk } from '../load/wrk.mjs';
import { ProcessGroup } from '../process-group.mjs';
import { clusterWorkers } from '../process-table.mjs';
import { median } from '../statistics.mjs';
import { answersHello } from '../systems/answers.mjs';
import { livePids } from '../systems/plain-app.mjs';
import { measureUsage } from '../usage.mjs';
import { compare } from './compare.mjs';

const APP = fileURLToPath(new URL('../apps/hello.mjs', import.meta.url));
export const instrumentation = {
  name: 'instrumentation',
  title: 'What measuring each request costs',
  about:
    'wrk on 64 kept connections, GET /hello of an app with nothing else, in a cluster with metrics (the default) and with `metrics: false`.',
  seconds: 5,
  rounds: 7,
  programs: ['wrk'],
  adapters: ['express', 'fastify'],
  parameters: { connections: 64, path: '/hello' },
  chart: { metric: 'cpuMicros', title: 'CPU per request', unit: 'µs', better: 'lower' },
  async rows(run) {
    const rows = await compare({
      run,
      group: run.group,
      rounds: run.rounds,
      contestants: [
        { system: helloCluster('metrics: false', { metrics: false }) },
        { system: helloCluster('with metrics', {}) },
      ],
      async measure(running) {
        const load = { path: '/hello', connections: 64 };
        await warmUp(running, load);
        const used = measureUsage(running);
        const result = await wrk(running, { ...load, seconds: run.seconds });
        return { ...result, ...used(result.requests) };
      },
    });
    const [off, on] = rows;
    if (off.notRun ?? on.notRun) return rows;
    const ratio = median(on.rounds.map(({ cpuMicros }, i) => cpuMicros / off.rounds[i].cpuMicros));
    return [off, { ...on, ratio }];
  },
};

/** A cluster of an app with one route. */
function helloCluster(label, moduleOptions) {
  return {
    name: label,
    label: () => label,
    missing: async () => undefined,
    start({ node, adapter, workers, port }) {
      return ProcessGroup.begin(async (group) => {
        const primary = group.spawn(node, [APP], {
          env: {
            NODE_ENV: 'production',
            ADAPTER: adapter,
            MODE: 'cluster',
            MODULE_OPTIONS: JSON.stringify(moduleOptions),
            PORT: String(port),
            WORKERS: String(workers),
            CLUSTER_LOG_FORMAT: 'json',
          },
        });
        await answersHello(group, port);
        return {
          port,
          enter: [],
          frontPids: () => livePids([primary]),
          workerPids: () => clusterWorkers(primary.pid),
          stop: () => group.stop(),
        };
      });
    },
  };
}
