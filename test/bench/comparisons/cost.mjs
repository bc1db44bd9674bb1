import { compareWindows } from './compare-windows.mjs';
import { LOAD, WINDOWED } from './windowed.mjs';

const LOADS = { 'keep-alive': false, 'new connections': true };

const CLUSTERS = [
  'node-cluster-shared',
  'nestjs-cluster',
  'nestjs-cluster-without-metrics',
  'nestjs-cluster-without-cpu-bound',
];

export const cost = {
  ...WINDOWED,
  name: 'cost',
  title: 'What clustering costs a request',
  about:
    'The sample app as plain processes that share a port by reusePort (as one process where one worker is asked for), on node:cluster, and on nestjs-cluster: with everything on, with `metrics: false`, and without @CpuBound() methods. wrk on 64 connections, GET /hello, kept or a new one for each request; resident memory of a worker before any load, and at the end of a window.',
  adapters: ['express', 'fastify'],
  baseline: 'plain processes',
  async rows(run) {
    // Before Node 22.12 Node lacks reusePort, so only a single plain process can be compared there.
    const plain = run.workers === 1 ? 'one-process' : 'reuse-port';
    const systems = run.pick([plain, ...CLUSTERS]);
    const rows = [];
    for (const [name, newConnections] of Object.entries(LOADS)) {
      const compared = await compareWindows({
        run,
        group: `${run.group}, ${name}`,
        baseline: plain,
        contestants: systems.map((system) => ({ system })),
        load: { ...LOAD, newConnections },
      });
      rows.push(...compared);
    }
    return rows;
  },
};
