import { compareWindows } from './compare-windows.mjs';
import { LOAD, WINDOWED } from './windowed.mjs';

const LOADS = { 'keep-alive': false, 'new connections': true };
const BASELINE = 'nestjs-cluster';
/** The scopes keep-alive and new-connections have the cost of a request. No other scope repeats it. */
const SHOWN = ['cpuRatio', 'cpuRatioQuartile', 'cpuRatioLeast', 'difference', 'isBaseline'];

const { chart: _chart, ...SETTINGS } = WINDOWED;

export const cost = {
  ...SETTINGS,
  name: 'cost',
  title: 'The cost of metrics and threads',
  about:
    'CPU of a request, as a multiple of that of the sample app on nestjs-cluster as it is by default: with `metrics: false`, and without @CpuBound() methods. wrk on 64 connections, GET /hello, kept or a new one for each request.',
  adapters: ['express', 'fastify'],
  baseline: BASELINE,
  async rows(run) {
    const systems = run.pick([
      BASELINE,
      'nestjs-cluster-without-metrics',
      'nestjs-cluster-without-cpu-bound',
    ]);
    const rows = [];
    for (const [name, newConnections] of Object.entries(LOADS)) {
      const compared = await compareWindows({
        run,
        group: `${run.group}, ${name}`,
        baseline: BASELINE,
        contestants: systems.map((system) => ({ system })),
        load: { ...LOAD, newConnections },
      });
      rows.push(...compared.map(ratiosOf));
    }
    return rows;
  },
};

/** The row without what another scope has. */
function ratiosOf({ group, system, label, ours, notRun, windows, ...metrics }) {
  const shown = Object.entries(metrics).filter(([key]) => SHOWN.includes(key));
  return { group, system, label, ours, notRun, ...Object.fromEntries(shown), windows };
}
