import type { MetricsClient } from '../contract/snapshot/types.js';
import { named } from '../contract/snapshot/prometheus.js';
import { type Task, TASK_OUTCOMES, type TaskOutcome } from './run/runner.interface.js';

/** Bucket bounds in seconds: from the overhead of a thread to the longest likely wait of a client. */
const WAIT_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const RUN_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export interface OffloadSnapshot {
  /** Number of threads. 0 if calls run on the event loop. */
  readonly threads: number;
  readonly running: number;
  readonly queueSize: number;
}

/** Counts the calls to `@CpuBound()` methods, and measures their durations. */
export class OffloadMetrics {
  readonly #tasks: InstanceType<MetricsClient['Counter']>;
  readonly #wait: InstanceType<MetricsClient['Histogram']>;
  readonly #run: InstanceType<MetricsClient['Histogram']>;
  /** Metrics with the label `worker`. */
  readonly labelled: readonly object[];

  /** @param slot the value of the gauges' label `worker`. */
  constructor(
    { Counter, Gauge, Histogram }: MetricsClient,
    slot: number,
    tasks: readonly Task[],
    read: () => OffloadSnapshot,
  ) {
    this.#tasks = new Counter({
      ...named('offload_tasks_total', 'Calls to @CpuBound() methods, by outcome'),
      labelNames: ['task', 'outcome'],
    });
    const histogram = (name: string, help: string, buckets: readonly number[]) =>
      new Histogram({ ...named(name, help), labelNames: ['task'], buckets });
    this.#wait = histogram(
      'offload_wait_seconds',
      'Time that calls to @CpuBound() methods spent waiting for a thread',
      WAIT_BUCKETS,
    );
    this.#run = histogram(
      'offload_run_seconds',
      'Time that calls to @CpuBound() methods spent running, with the transfer to the thread and back',
      RUN_BUCKETS,
    );
    const gauge = (name: string, help: string, value: () => number): object =>
      new Gauge({
        ...named(name, help),
        labelNames: ['worker'],
        collect() {
          this.set({ worker: slot }, value());
        },
      });
    this.labelled = [
      gauge(
        'offload_queue_size',
        'Calls to @CpuBound() methods that are waiting for a thread',
        () => read().queueSize,
      ),
      gauge('offload_threads', 'Threads that run @CpuBound() methods', () => read().threads),
    ];
    // Each time series starts at 0, so that rate() counts the first event.
    for (const { name } of tasks) {
      for (const outcome of TASK_OUTCOMES) this.#tasks.inc({ task: name, outcome }, 0);
    }
  }

  /** A scrape sums these metrics over all workers. */
  get all(): readonly object[] {
    return [this.#tasks, this.#wait, this.#run];
  }

  began({ name }: Task, waitedMs: number): void {
    this.#wait.observe({ task: name }, waitedMs / 1_000);
  }

  ran({ name }: Task, ms: number): void {
    this.#run.observe({ task: name }, ms / 1_000);
  }

  ended({ name }: Task, outcome: TaskOutcome): void {
    this.#tasks.inc({ task: name, outcome });
  }
}
