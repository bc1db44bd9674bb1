import { type Column, formatTable, printLines, ToolError } from '../output.js';
import { measureRun, type Plan, type Run } from './measure-run.js';
import { type Measurement, measurementOf, nextWorkers, recommend } from './recommendation.js';

/** Measurements per number of workers. The median is used. */
const ROUNDS = 3;

const COLUMNS: readonly Column<Measurement>[] = [
  { title: 'workers', value: ({ workers }) => String(workers) },
  { title: 'requests/s', value: ({ requestsPerSecond }) => requestsPerSecond.toFixed(1) },
  { title: 'p50 ms', value: ({ p50Ms }) => p50Ms.toFixed(1) },
  { title: 'p99 ms', value: ({ p99Ms }) => p99Ms.toFixed(1) },
  { title: 'failed', value: ({ failed }) => String(failed) },
  { title: 'event loop', value: (each) => each.eventLoopUtilization.toFixed(2) },
  { title: 'memory MB', value: ({ memoryBytes }) => (memoryBytes / 1e6).toFixed(0) },
];

/** Tries several worker counts in turn, and prints the best one with the reason. */
export async function tune(
  plan: Plan,
  maxWorkers: number,
  interrupted: AbortSignal,
): Promise<void> {
  const runs = new Map<number, Run[]>();
  const measure = async (workers: number, round: number): Promise<void> => {
    const run = await measureRun(plan, workers, interrupted);
    runs.set(workers, [...(runs.get(workers) ?? []), run]);
    const figures = `${run.requestsPerSecond.toFixed(1)} requests/s, p99 ${run.p99Ms.toFixed(1)} ms`;
    process.stderr.write(`round ${round} of ${ROUNDS}: CLUSTER_WORKERS=${workers}: ${figures}\n`);
  };
  const measurements = (): Measurement[] => [...runs.values()].map(measurementOf);

  // The first round selects the numbers of workers. Each further round measures them all again, so
  // that other load on the machine affects all numbers equally.
  for (;;) {
    const workers = nextWorkers(measurements(), maxWorkers);
    if (workers === undefined) break;
    await measure(workers, 1);
  }
  for (let round = 2; round <= ROUNDS; round += 1) {
    for (const workers of runs.keys()) await measure(workers, round);
  }
  printLines(formatTable(COLUMNS, measurements()));

  const recommendation = recommend(measurements());
  if (recommendation === undefined) {
    throw new ToolError(
      `requests failed at every worker count; set --connections below ${plan.load.connections}, or read the app's log`,
    );
  }
  const { notes, reason, workers } = recommendation;
  printLines(['', ...notes.map((each) => `note: ${each}`), reason, `CLUSTER_WORKERS=${workers}`]);
}
