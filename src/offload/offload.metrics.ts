import { Counter, Gauge, Histogram, type Metric } from 'prom-client';
import type { OffloadSnapshot } from './task/offload-snapshot.js';
import { type Task, TASK_OUTCOMES, type TaskObserver, type TaskOutcome } from './task/task.js';

/** Bucket bounds in seconds: from the overhead of a thread to the longest time that a client is likely to wait. */
const WAIT_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const RUN_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Counts and times the calls of `@CpuBound()` methods. */
export class OffloadMetrics implements TaskObserver {
  readonly #tasks: Counter<'task' | 'outcome'>;
  readonly #wait: Histogram<'task'>;
  readonly #run: Histogram<'task'>;
  readonly #inline: Counter<'task'>;
  readonly #cpu: Counter<'task'>;
  readonly #gauges: readonly Metric[];

  /** @param slot the value of the label `worker` of the gauges. */
  constructor(prefix: string, slot: number, tasks: readonly Task[], read: () => OffloadSnapshot) {
    const named = (name: string) => `${prefix}nestjs_cluster_offload_${name}`;
    const registers: [] = [];
    this.#tasks = new Counter({
      name: named('tasks_total'),
      help: 'Calls of @CpuBound() methods, by how they ended',
      labelNames: ['task', 'outcome'],
      registers,
    });
    this.#wait = new Histogram({
      name: named('wait_seconds'),
      help: 'Time that calls of @CpuBound() methods waited for a thread',
      labelNames: ['task'],
      buckets: WAIT_BUCKETS,
      registers,
    });
    this.#run = new Histogram({
      name: named('run_seconds'),
      help: 'Time that calls of @CpuBound() methods ran, the way to the thread and back included',
      labelNames: ['task'],
      buckets: RUN_BUCKETS,
      registers,
    });
    this.#inline = new Counter({
      name: named('inline_total'),
      help: "Calls of @CpuBound() methods with mode: 'auto' that ran on the event loop",
      labelNames: ['task'],
      registers,
    });
    this.#cpu = new Counter({
      name: named('cpu_seconds_total'),
      help: 'CPU time of threads for calls of @CpuBound() methods',
      labelNames: ['task'],
      registers,
    });
    const gauge = (name: string, help: string, value: () => number): Metric =>
      new Gauge({
        name: named(name),
        help,
        labelNames: ['worker'],
        registers,
        collect() {
          this.set({ worker: slot }, value());
        },
      });
    this.#gauges = [
      gauge(
        'queue_size',
        'Calls of @CpuBound() methods that wait for a thread',
        () => read().queueSize,
      ),
      gauge('threads', 'Threads that run @CpuBound() methods', () => read().threads),
    ];
    // Each series begins at 0: otherwise its first event would not count in a rate.
    for (const { name, mode } of tasks) {
      if (mode === 'auto') this.#inline.inc({ task: name }, 0);
      for (const outcome of TASK_OUTCOMES) this.#tasks.inc({ task: name, outcome }, 0);
    }
  }

  /** Metrics that are summed over all workers. */
  get all(): readonly Metric[] {
    return [this.#tasks, this.#wait, this.#run, this.#cpu, this.#inline];
  }

  /** Metrics with a label for this worker. */
  get labelled(): readonly Metric[] {
    return this.#gauges;
  }

  began({ name }: Task, waitedMs: number): void {
    this.#wait.observe({ task: name }, waitedMs / 1_000);
  }

  ran({ name }: Task, ms: number): void {
    this.#run.observe({ task: name }, ms / 1_000);
  }

  /** The call ran on the event loop, by `mode: 'auto'`. */
  ranInline({ name }: Task): void {
    this.#inline.inc({ task: name });
  }

  computed({ name }: Task, cpuMs: number): void {
    this.#cpu.inc({ task: name }, cpuMs / 1_000);
  }

  ended({ name }: Task, outcome: TaskOutcome): void {
    this.#tasks.inc({ task: name, outcome });
  }
}
