import inspector from 'node:inspector';
import { setTimeout as delay } from 'node:timers/promises';
import { reportError, reportUncaught } from '../../contract/errors/error-report.js';
import type { BlockedRequest } from '../../contract/messages.js';
import { ARE_CONTEXTS_CHEAP, runningRequests } from '../serve/request.js';
import type { PrimaryChannel } from './primary-channel.js';
import { type ProcessLink, SNAPSHOT_TIMEOUT_MS } from './process-link.js';

/** The interval at which metrics are also sent unasked, so that a crash loses few of them. */
const PUSH_METRICS_MS = 10_000;

/** A worker's reports to its primary: its heartbeat, its health and its measurements. */
export class WorkerReports {
  constructor(
    private readonly channel: PrimaryChannel,
    private readonly link: ProcessLink,
  ) {
    if (ARE_CONTEXTS_CHEAP) link.followScopes(true);
    // 'exit' is emitted in the asynchronous context of the call of process.exit().
    process.once('exit', () => {
      if (link.state === 'ready') void channel.send({ type: 'exiting', requests: this.#requests });
    });
  }

  get #requests(): BlockedRequest[] {
    return runningRequests(this.link.tracker);
  }

  /** Reports an uncaught error, which ends the process. */
  fatal(error: unknown, abort: boolean): void {
    const requests = this.#requests;
    void this.channel.send({ type: 'fatal', error: reportUncaught(error), abort, requests });
  }

  pong(seq: number): void {
    const { link } = this;
    const stats = link.measure();
    const due = performance.now() - link.metricsAt >= PUSH_METRICS_MS;
    if (due && this.channel.drained) void this.metrics();
    // Replaces the snapshot of a starting cluster. The last snapshot is used if the primary fails.
    if (link.knowsLittle) void link.snapshot();
    void this.channel.send({ type: 'pong', seq, stats, debugged: inspector.url() !== undefined });
  }

  async health(): Promise<void> {
    const verdict = await this.link.checkHealth().catch((error: unknown) => ({
      healthy: false,
      detail: reportError(error).message,
    }));
    await this.channel.send({ type: 'checked', ...verdict });
  }

  /** Answers whether threads can load the `@CpuBound()` methods that they are to run. */
  async threads(): Promise<void> {
    const error = await this.link.threads?.verify().catch(reportError);
    await this.channel.send({ type: 'verified', error: error ?? null });
  }

  /** Sends the metrics. */
  async metrics(): Promise<void> {
    await this.channel.send({ type: 'metrics', ...(await this.link.report()) });
  }

  /** Sends the metrics for the last time. The app's hooks run later and may clear the metrics registry. */
  async lastMetrics(): Promise<void> {
    await Promise.race([this.metrics(), delay(SNAPSHOT_TIMEOUT_MS)]);
    this.link.isSealed = true;
  }
}
