import type { Chart, Result, Row } from '../../bench/report/types.d.mts';

const CHART: Chart = {
  metric: 'cpuMicros',
  title: 'CPU per request',
  unit: 'µs',
  better: 'lower',
  log: false,
};

/** A result of the benchmark as `npm run bench` writes it, with what a test is about. */
export function benchResult(result: Partial<Result>): Result {
  return {
    scope: 'keep-alive',
    title: 'Keep-alive',
    about: 'What is measured.',
    command: 'npm run bench -- --scope keep-alive',
    date: '2026-11-21T12:00:00.000Z',
    parameters: { seconds: 5, rounds: 3 },
    machine: { cpu: 'Some CPU', cores: 2, memoryBytes: 8e9, kernel: '6.1.0' },
    versions: { node: '24.21.0', pm2: '7.0.4' },
    chart: CHART,
    rows: [],
    ...result,
  };
}

/** A chart of a metric of which less is better, if nothing else is said. */
export function benchChart(metric: string, chart: Partial<Chart> = {}): Chart {
  return { ...CHART, metric, title: metric, ...chart };
}

/** A row of a group; `ours` where the system is one of nestjs-cluster. */
export function benchRow(group: string, system: string, metrics: Record<string, unknown>): Row {
  return { group, system, label: system, ours: system.startsWith('nestjs-cluster'), ...metrics };
}
