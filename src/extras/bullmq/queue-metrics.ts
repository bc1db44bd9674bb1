import { Counter, Gauge, Histogram, type Metric } from 'prom-client';
import { CALL_OUTCOMES, type CallOutcome, type QueueObserver } from './queue-observer.js';
import type { DroppedReply } from './pending-calls.js';

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** A scrape does not wait for Redis for longer. */
const COUNTS_MS = 300;

/** Jobs by state, by queue. */
export type QueueLengths = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Counts and times queued calls and the jobs that this process runs. */
export class QueueMetrics implements QueueObserver {
  readonly metrics: readonly Metric[];
  readonly #calls: Counter<'task' | 'outcome'>;
  readonly #dropped: Counter<'reason'>;
  readonly #attempts: Counter<'queue'>;
  readonly #stalled: Counter<'queue'>;
  readonly #wait: Histogram<'queue'>;
  readonly #run: Histogram<'task'>;

  constructor(
    prefix: string,
    tasks: readonly { readonly name: string; readonly queue?: string | undefined }[],
    /** Asks Redis; rejects while that is away. */
    lengths: () => Promise<QueueLengths>,
  ) {
    const counter = <T extends string>(name: string, help: string, labelNames: T[]) =>
      new Counter({
        name: `${prefix}nestjs_cluster_queue_${name}`,
        help,
        labelNames,
        registers: [],
      });
    const histogram = <T extends string>(name: string, help: string, label: T) =>
      new Histogram({
        name: `${prefix}nestjs_cluster_queue_${name}`,
        help,
        labelNames: [label],
        buckets: BUCKETS,
        registers: [],
      });
    this.#calls = counter('calls_total', 'Queued calls, by how they ended', ['task', 'outcome']);
    this.#dropped = counter('replies_dropped_total', 'Replies that nobody waited for', ['reason']);
    this.#attempts = counter('attempts_total', 'Jobs that were begun, each time', ['queue']);
    this.#stalled = counter('stalled_total', 'Jobs whose consumer was lost', ['queue']);
    this.#wait = histogram('wait_seconds', 'Time that jobs waited for a consumer', 'queue');
    this.#run = histogram('run_seconds', 'Time that jobs ran', 'task');
    const jobs = new Gauge({
      name: `${prefix}nestjs_cluster_queue_jobs`,
      help: 'Jobs in Redis, of all machines',
      labelNames: ['queue', 'state'],
      registers: [],
      // All workers say the same.
      aggregator: 'max',
      async collect() {
        this.reset();
        for (const [queue, states] of Object.entries(await bounded(lengths()))) {
          for (const [state, count] of Object.entries(states)) this.set({ queue, state }, count);
        }
      },
    });
    for (const { name, queue = '' } of tasks) {
      for (const outcome of CALL_OUTCOMES) this.#calls.inc({ task: name, outcome }, 0);
      this.#attempts.inc({ queue }, 0);
      this.#stalled.inc({ queue }, 0);
    }
    this.metrics = [
      this.#calls,
      this.#dropped,
      this.#attempts,
      this.#stalled,
      this.#wait,
      this.#run,
      jobs,
    ];
  }

  called(task: string, outcome: CallOutcome): void {
    this.#calls.inc({ task, outcome });
  }

  replyDropped(reason: DroppedReply): void {
    this.#dropped.inc({ reason });
  }

  began(queue: string, waitedMs: number): void {
    this.#attempts.inc({ queue });
    this.#wait.observe({ queue }, waitedMs / 1_000);
  }

  ran(task: string, ms: number): void {
    this.#run.observe({ task }, ms / 1_000);
  }

  stalled(queue: string): void {
    this.#stalled.inc({ queue });
  }
}

/** Nothing where it takes long, or cannot be told. */
async function bounded(lengths: Promise<QueueLengths>): Promise<QueueLengths> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<QueueLengths>((resolve) => {
    timer = setTimeout(() => resolve({}), COUNTS_MS);
  });
  try {
    return await Promise.race([lengths, late]);
  } catch {
    return {};
  } finally {
    clearTimeout(timer);
  }
}
