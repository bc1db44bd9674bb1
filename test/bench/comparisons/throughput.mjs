import { compareWindows } from './compare-windows.mjs';
import { EVERYBODY } from '../systems/index.mjs';

const LOAD = { path: '/hello', connections: 64 };

/** The CPU cost of a request on a route that does almost nothing, and the throughput. */
function throughput({ newConnections, ...description }) {
  return {
    seconds: 2,
    starts: 3,
    windows: 6,
    programs: ['wrk'],
    parameters: LOAD,
    metric: 'cpuMicros',
    adapters: ['express', 'fastify'],
    baseline: 'nestjs-cluster',
    rows(run) {
      return compareWindows({
        run,
        group: run.group,
        baseline: 'nestjs-cluster',
        contestants: run.contestants(EVERYBODY),
        load: { ...LOAD, newConnections },
      });
    },
    ...description,
  };
}

export const keepAlive = throughput({
  name: 'keep-alive',
  title: 'Keep-alive',
  about:
    'wrk on 64 kept connections, GET /hello. CPU per request is user and system time of all server processes, primary or proxy included. nestjs-cluster runs with everything on: metrics, health, supervision, watchdog; the others run the same app without it.',
  newConnections: false,
});

export const newConnections = throughput({
  name: 'new-connections',
  title: 'A new connection for each request',
  about: 'As before, but every request comes on a connection of its own.',
  newConnections: true,
});
