import inspector from 'node:inspector';
import { setTimeout as delay } from 'node:timers/promises';
import { type PrimaryMessage, reportError } from '../../contract/ipc/index.js';
import type { LocalProcess } from './local-process.js';
import type { PrimaryChannel } from './primary-channel.js';
import { RequestWatch } from '../quarantine/request-watch.js';
import { SNAPSHOT_TIMEOUT_MS, type WorkerLink } from './worker-link.js';

/** Metrics that nobody asks for are sent this often, so that a crash loses little. */
const PUSH_METRICS_MS = 10_000;

/** A worker's reports to its primary: its heartbeat, its health and its measurements. */
export class WorkerReports {
  readonly watch: RequestWatch;

  constructor(
    private readonly local: LocalProcess,
    private readonly channel: PrimaryChannel,
    private readonly link: WorkerLink,
  ) {
    this.watch = local.watch = new RequestWatch(local, channel);
  }

  /** Nobody caught an error: the process ends. */
  fatal(error: unknown, abort: boolean): void {
    this.watch.tellSuspects('error');
    void this.channel.send({ type: 'fatal', error: reportError(error), abort });
  }

  /** Answers a heartbeat. */
  pong(seq: number): void {
    const stats = this.local.meter.measure();
    const due = performance.now() - this.local.serializedAt >= PUSH_METRICS_MS;
    if (due && this.channel.drained) void this.metrics(false);
    // What is given when the primary does not answer should not be the picture of a cluster that
    // was still booting.
    if (this.link.knowsLittle) void this.link.snapshot();
    void this.channel.send({ type: 'pong', seq, stats, debugged: inspector.url() !== undefined });
  }

  /** Answers whether the app finds itself healthy. */
  async health(id: number): Promise<void> {
    const verdict = await this.link.checkHealth().catch((error: unknown) => ({
      healthy: false,
      detail: reportError(error).message,
    }));
    await this.channel.send({ type: 'checked', id, ...verdict });
  }

  /** Answers whether threads can load what they are to run. */
  async threads(): Promise<void> {
    const error = await this.link.threads?.verify().catch(reportError);
    await this.channel.send({ type: 'verified', error: error ?? null });
  }

  /** Sends the metrics. @param asked in answer to `collect`. */
  async metrics(asked: boolean): Promise<void> {
    const metrics = await this.local.serializeMetrics();
    const stats = this.local.meter.peek();
    await this.channel.send({ type: 'metrics', asked, stats, ...metrics });
  }

  /** Sends the metrics for the last time: the app's own hooks may clear its registry afterwards. */
  async lastMetrics(): Promise<void> {
    await Promise.race([this.metrics(false), delay(SNAPSHOT_TIMEOUT_MS)]);
    this.local.sealMetrics();
  }

  /** Folds metrics of workers that are gone into one body. */
  fold({ epoch, bodies }: PrimaryMessage & { type: 'fold' }): void {
    const body = this.local.metrics?.fold(bodies);
    if (body === undefined) return;
    void this.channel.send({ type: 'folded', epoch, count: bodies.length, body });
  }
}
