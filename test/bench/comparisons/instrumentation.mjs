import { compareWindows } from './compare-windows.mjs';
import { LOAD, WINDOWED } from './windowed.mjs';

export const instrumentation = {
  ...WINDOWED,
  name: 'instrumentation',
  title: 'What measuring each request costs',
  about:
    'wrk on 64 kept connections, GET /hello of the sample app, in a cluster with metrics (the default) and with `metrics: false`.',
  adapters: ['express', 'fastify'],
  baseline: '`metrics: false`',
  rows(run) {
    return compareWindows({
      run,
      group: run.group,
      baseline: 'nestjs-cluster-without-metrics',
      contestants: run
        .pick(['nestjs-cluster', 'nestjs-cluster-without-metrics'])
        .map((system) => ({ system })),
      load: LOAD,
    });
  },
};
