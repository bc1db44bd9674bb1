import { warmUp, wrk } from '../load/wrk.mjs';
import { measureUsage } from '../usage.mjs';
import { compare } from './compare.mjs';
import { EVERYBODY } from './everybody.mjs';

/** What a request costs on a route that does next to nothing, and what gets through. */
function throughput({ newConnections, ...description }) {
  return {
    seconds: 5,
    rounds: 5,
    programs: ['wrk'],
    adapters: ['express', 'fastify'],
    parameters: { connections: 64, path: '/hello' },
    chart: { metric: 'cpuMicros', title: 'CPU per request', unit: 'µs', better: 'lower' },
    rows(run) {
      return compare({
        run,
        group: run.group,
        rounds: run.rounds,
        contestants: run.pick(EVERYBODY).map((system) => ({ system })),
        async measure(running) {
          const load = { path: '/hello', connections: 64, newConnections };
          await warmUp(running, load);
          const used = measureUsage(running);
          const result = await wrk(running, { ...load, seconds: run.seconds });
          return { ...result, ...used(result.requests) };
        },
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
