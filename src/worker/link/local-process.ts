import type { Server } from 'node:http';
import {
  type ClusterSnapshot,
  MAX_METRICS_BODY_LENGTH,
  type MetricsSource,
  type WorkerIdentity,
  type WorkerState,
} from '../../contract/snapshot/index.js';
import type { RequestWatch } from '../quarantine/request-watch.js';
import { RequestTracker } from '../http/request-tracker.js';
import { WorkerMeter } from './worker-meter.js';

/** The parts of any process that serves an app, with a primary or without. */
export class LocalProcess {
  readonly tracker = new RequestTracker();
  readonly meter: WorkerMeter;
  state: WorkerState = 'starting';
  endpoints: readonly string[] = [];
  /** Workers that must be ready for the cluster to be up. */
  minReady: ClusterSnapshot['minReady'] = 1;
  metrics: MetricsSource | undefined;
  /** Set in a worker that has a primary. */
  watch: Pick<RequestWatch, 'follow'> | undefined;
  /** Whether the drain has to wait for earlier work other than requests. */
  readonly tasks: ((before: number) => boolean)[] = [];
  /** Parts that tell their own clients that this process leaves. */
  readonly farewells: ((withinMs: number) => Promise<void>)[] = [];
  /** Monotonic ms. */
  serializedAt = -Infinity;
  #lastBody = '';
  #sealed = false;

  constructor(
    readonly identity: WorkerIdentity,
    private readonly balancing: string,
    droppedLogLines?: () => number,
  ) {
    this.meter = new WorkerMeter(this.tracker, droppedLogLines);
  }

  /** Asks each: the question says that the process drains. */
  readonly hasTasksFrom = (before: number): boolean =>
    this.tasks.filter((has) => has(before)).length > 0;

  /** Resolves once they are gone. An error of theirs does not keep the process. */
  readonly leaveClients = async (withinMs: number): Promise<void> => {
    await Promise.allSettled(this.farewells.map((leave) => leave(withinMs)));
  };

  get accepting(): boolean {
    return this.state === 'ready' || this.state === 'starting';
  }

  follow(server: unknown): void {
    this.tracker.follow(server as Server);
    this.watch?.follow(server as Server);
  }

  /** The metrics of this process; what they were before, where they cannot be read or are too large. */
  async serializeMetrics(): Promise<{ readonly body: string; readonly ageMs: number }> {
    if (this.metrics === undefined) return { body: '', ageMs: 0 };
    // The source bears with what metrics of the app do, and has logged that.
    const body = this.#sealed ? undefined : await this.metrics.serialize().catch(() => undefined);
    if (body !== undefined && body.length <= MAX_METRICS_BODY_LENGTH) {
      this.#lastBody = body;
      this.serializedAt = performance.now();
      return { body, ageMs: 0 };
    }
    const ageMs = this.#lastBody === '' ? 0 : Math.round(performance.now() - this.serializedAt);
    return { body: this.#lastBody, ageMs };
  }

  /** The last serialised value is final. */
  sealMetrics(): void {
    this.#sealed = true;
  }

  /** This process alone, as a cluster of one. */
  snapshot(): ClusterSnapshot {
    const { slot, pid, generation } = this.identity;
    const stats = this.meter.peek();
    return {
      balancing: this.balancing,
      ports: [],
      desired: 1,
      ready: this.state === 'ready' ? 1 : 0,
      minReady: this.minReady,
      generation,
      degraded: 0,
      reloads: { completed: 0, aborted: 0, reverted: 0 },
      dismissed: [],
      leader: this.state === 'ready' ? this.identity : null,
      primary: null,
      workers: [
        {
          slot,
          pid,
          generation,
          state: this.state,
          uptimeSeconds: Math.round(process.uptime() * 1_000) / 1_000,
          restarts: 0,
          restartsByCause: {},
          lastExit: null,
          degraded: false,
          abortedRequestsTotal: 0,
          droppedMessagesTotal: 0,
          refusedMetricsTotal: 0,
          heartbeatAgeMs: 0,
          responsive: true,
          ...stats,
        },
      ],
    };
  }
}
