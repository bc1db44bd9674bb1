import inspector from 'node:inspector';
import { setTimeout as delay } from 'node:timers/promises';
import { type BlockedRequest, reportError, reportUncaught } from '../../contract/ipc/index.js';
import { ARE_CONTEXTS_CHEAP, runningRequests } from '../serve/request.js';
import type { PrimaryChannel } from './primary-channel.js';
import { SNAPSHOT_TIMEOUT_MS, type WorkerLink } from './worker-link.js';

/** The interval at which metrics are also sent unasked, so that a crash loses few of them. */
const PUSH_METRICS_MS = 10_000;

/** A worker's reports to its primary: its heartbeat, its health and its measurements. */
export class WorkerReports {
  constructor(
    private readonly channel: PrimaryChannel,
    private readonly link: WorkerLink,
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
    const due = performance.now() - link.metrics.serializedAt >= PUSH_METRICS_MS;
    if (due && this.channel.drained) void this.metrics(false);
    // Replaces the snapshot of a starting cluster. The last snapshot is used if the primary fails.
    if (link.knowsLittle) void link.snapshot();
    void this.channel.send({ type: 'pong', seq, stats, debugged: inspector.url() !== undefined });
  }

  async health(id: number): Promise<void> {
    const verdict = await this.link.checkHealth().catch((error: unknown) => ({
      healthy: false,
      detail: reportError(error).message,
    }));
    await this.channel.send({ type: 'checked', id, ...verdict });
  }

  /** Answers whether threads can load the `@CpuBound()` methods that they are to run. */
  async threads(): Promise<void> {
    const error = await this.link.threads?.verify().catch(reportError);
    await this.channel.send({ type: 'verified', error: error ?? null });
  }

  /** Sends the metrics. @param asked whether the primary has asked for them by `collect`. */
  async metrics(asked: boolean): Promise<void> {
    const metrics = await this.link.metrics.serialize();
    await this.channel.send({ type: 'metrics', asked, stats: this.link.stats(), ...metrics });
  }

  /** Sends the metrics for the last time. The app's hooks run later and may clear the metrics registry. */
  async lastMetrics(): Promise<void> {
    await Promise.race([this.metrics(false), delay(SNAPSHOT_TIMEOUT_MS)]);
    this.link.metrics.seal();
  }
}
