import type { MetricsClient } from '../contract/snapshot/index.js';
import { named } from '../contract/snapshot/prometheus.js';
import {
  type OffloadSnapshot,
  type Task,
  TASK_OUTCOMES,
  type TaskObserver,
  type TaskOutcome,
} from './run/runner.interface.js';

/** Bucket bounds in seconds: from the overhead of a thread to the longest time that a client is likely to wait. */
const WAIT_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const RUN_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Counts and times the calls of `@CpuBound()` methods. */
export class OffloadMetrics implements TaskObserver {
  readonly #tasks: InstanceType<MetricsClient['Counter']>;
  readonly #wait: InstanceType<MetricsClient['Histogram']>;
  readonly #run: InstanceType<MetricsClient['Histogram']>;
  /** Metrics with a label for this worker. */
  readonly labelled: readonly object[];

  /** @param slot the value of the label `worker` of the gauges. */
  constructor(
    { Counter, Gauge, Histogram }: MetricsClient,
    slot: number,
    tasks: readonly Task[],
    read: () => OffloadSnapshot,
  ) {
    this.#tasks = new Counter({
      ...named('offload_tasks_total', 'Calls of @CpuBound() methods, by how they ended'),
      labelNames: ['task', 'outcome'],
    });
    this.#wait = new Histogram({
      ...named(
        'offload_wait_seconds',
        'Time that calls of @CpuBound() methods waited for a thread',
      ),
      labelNames: ['task'],
      buckets: WAIT_BUCKETS,
    });
    this.#run = new Histogram({
      ...named(
        'offload_run_seconds',
        'Time that calls of @CpuBound() methods ran, the way to the thread and back included',
      ),
      labelNames: ['task'],
      buckets: RUN_BUCKETS,
    });
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
        'Calls of @CpuBound() methods that wait for a thread',
        () => read().queueSize,
      ),
      gauge('offload_threads', 'Threads that run @CpuBound() methods', () => read().threads),
    ];
    // Each series begins at 0: otherwise its first event would not count in a rate.
    for (const { name } of tasks) {
      for (const outcome of TASK_OUTCOMES) this.#tasks.inc({ task: name, outcome }, 0);
    }
  }

  /** Metrics that are summed over all workers. */
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
