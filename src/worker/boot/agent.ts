import cluster from 'node:cluster';
import inspector from 'node:inspector';
import { setTimeout as delay } from 'node:timers/promises';
import { ClusterError } from '../../contract/errors/errors.js';
import type { OwnAssignment } from '../../contract/process/assignment.js';
import { reportError } from '../../contract/errors/error-report.js';
import { LEAVE_SIGNAL, type PrimaryMessage } from '../../contract/messages.js';
import type { ResolvedClusterOptions } from '../../contract/options/resolve.js';
import { BootWatch } from './boot-output.js';
import { listen } from '../listen/listen.js';
import { PrimaryChannel } from '../link/primary-channel.js';
import { Rebalance } from '../link/rebalance.js';
import { type HttpApp, ServedApp, type WorkerApp } from './served-app.js';
import { catchUncaught, reportUncaught, throwUncaught, uncaughtText } from './uncaught.js';
import { sampleHeap, startWatchdog } from '../watchdog/watchdog.js';
import { WorkerLeaderRole } from '../link/worker-leader-role.js';
import { ProcessLink, SNAPSHOT_TIMEOUT_MS } from '../link/process-link.js';
import { ARE_CONTEXTS_CHEAP, runningRequests } from '../serve/request-scope.js';
import { answerSignals, HOOKS_TAKEN_OVER } from './signals.js';

/** A thrown error should end the process within this time. If an app handler prevents it, the agent exits. */
const UNCAUGHT_MS = 100;

/** Metrics are also sent at this interval without a request, so that a crash loses few of them. */
const PUSH_METRICS_MS = 10_000;

/** After the app has closed itself, it has this long to call `process.exit()` with its own code. */
const CLOSED_GRACE_MS = 1_000;

/** Wait before checking whether the primary has exited, because it closes its channels first. */
const PRIMARY_EXIT_MS = 20;

/** The shutdown timeouts of a worker whose primary has died. */
const ORPHAN_SHUTDOWN = { lameDuckMs: 0, drainTimeoutMs: 1_500, killTimeoutMs: 500 };

type ListenAnswer = PrimaryMessage & { type: 'listen' | 'listen-refused' };

/** Runs a worker: starts the app, handles the primary's messages, drains and exits. */
export class WorkerAgent {
  #end!: (exitCode: number) => void;
  /** Resolves with the exit code when this process has nothing left to do. */
  readonly ended = new Promise<number>((resolve) => (this.#end = resolve));
  readonly link: ProcessLink;
  readonly #channel = new PrimaryChannel();
  readonly #leaderRole = new WorkerLeaderRole((message) => void this.#channel.send(message));
  readonly #rebalance: Rebalance;
  readonly #served: ServedApp;
  #answerListen!: (answer: [ListenAnswer, unknown]) => void;
  readonly #listenAnswer = new Promise<[ListenAnswer, unknown]>(
    (resolve) => (this.#answerListen = resolve),
  );
  /** While this is set, a startup error is reported as a listen error. */
  #isListening = false;
  #exitCode = 0;
  #hasAskedToLeave = false;
  #resolveDrained!: () => void;
  readonly #drained = new Promise<void>((resolve) => (this.#resolveDrained = resolve));
  #graceMs = 0; // from the end of the drain to the exit
  readonly #primaryPid: number;
  readonly #boot: BootWatch;

  constructor(
    { identity, workers, primaryPid, reportTo, printsBootError }: OwnAssignment,
    private readonly options: ResolvedClusterOptions,
    droppedLogLines: () => number,
  ) {
    this.#primaryPid = primaryPid;
    this.#boot = new BootWatch(
      printsBootError,
      (error) => void this.#channel.send({ type: 'boot-failed', error }),
      () => this.#end(1),
    );
    const link = new ProcessLink({
      options,
      droppedLogLines,
      logWarning: (message) => void this.#channel.send({ type: 'warning', message }),
      worker: { identity, workers, channel: this.#channel, leaderRole: this.#leaderRole },
    });
    this.link = link;
    this.#rebalance = new Rebalance(link.tracker);
    this.#served = new ServedApp(link, options.keepAliveTimeoutMs, (message) => link.warn(message));
    if (ARE_CONTEXTS_CHEAP) link.followScopes(true);
    // 'exit' is emitted in the async context of the process.exit() call, which identifies the request.
    process.once('exit', () => {
      const requests = runningRequests(link.tracker);
      if (link.state === 'ready') void this.#channel.send({ type: 'exiting', requests });
    });
    this.#channel.onMessage((message, handle) => this.#onMessage(message, handle));
    this.#channel.onClosed(() => void this.#onOrphaned());
    answerSignals(
      (signal) => void this.#askToLeave(signal),
      () => link.warn(HOOKS_TAKEN_OVER),
    );
    // If a reload turned the watchdog on, the primary may not have opened a pipe for it.
    if (!options.watchdog || reportTo === undefined) return;
    const { hangTimeoutMs, memory } = options;
    const { beats } = link.meter;
    const data = { beats, hangTimeoutMs, primaryPid, reportTo, samplesHeap: memory.profile };
    startWatchdog(data, link.tracker, (error) =>
      link.warn(`the watchdog thread has stopped: ${reportError(error).message}`),
    );
  }

  /** Starts the app. If that fails, reports the error, ends the process and returns `undefined`. */
  async run(createApp: () => Promise<WorkerApp>): Promise<WorkerApp | undefined> {
    try {
      const app = await createApp();
      const url = await this.#served.start(
        app,
        (httpApp) => this.#listen(httpApp),
        (signal) => this.#closeItself(signal),
      );
      this.#boot.end();
      catchUncaught((error) => this.#onUncaught(error));
      this.link.serve();
      this.#rebalance.report(); // so that the first load report does not include the startup
      const { endpoints, minReady, threads } = this.link;
      const verifiable = threads !== undefined;
      await this.#channel.send({ type: 'ready', url, endpoints, minReady, verifiable });
      if (this.options.memory.profile) sampleHeap();
      if (threads !== undefined) this.link.afterStart(() => threads.keep());
      void this.link.snapshot();
      return app;
    } catch (error) {
      this.#boot.end();
      const listening = this.#isListening;
      await this.#channel.send({ type: 'boot-failed', listening, error: reportError(error) });
      const isOurs = listening || error instanceof ClusterError;
      if (!isOurs) throwUncaught(error, this.#boot.prints); // so that the app's own handlers run
      setTimeout(() => this.#end(1), UNCAUGHT_MS);
      return undefined;
    }
  }

  /** Makes the app listen on the socket or address from the primary. @returns the app's URL. */
  async #listen(app: HttpApp): Promise<string> {
    this.#isListening = true;
    await this.#channel.send({ type: 'listen-request' });
    const [answer, handle] = await this.#listenAnswer;
    if (answer.type === 'listen-refused') {
      const { message, code } = answer.error;
      throw Object.assign(new Error(message), { code });
    }
    if (answer.target.activated) this.#served.sockets.isHeldBySystemd = true;
    const url = await listen(app, answer.target, handle);
    this.#isListening = false;
    return url;
  }

  #onMessage(message: Exclude<PrimaryMessage, { type: 'answer' }>, handle: unknown): void {
    switch (message.type) {
      case 'listen':
      case 'listen-refused':
        return this.#answerListen([message, handle]);
      case 'adopt':
        return this.#served.sockets.adopt(message.slot, handle);
      case 'connection':
        return this.#served.sockets.take(handle);
      case 'release':
        return this.#served.sockets.release(message.slot);
      case 'ping':
        return this.#pong(message.seq);
      case 'lead':
        return this.#leaderRole.receive(message);
      case 'check':
        return void this.#reportHealth();
      case 'verify':
        return void this.#reportThreads();
      case 'report-load':
        return void this.#channel.send({ type: 'load', ...this.#rebalance.report() });
      case 'give-away':
        return this.#rebalance.giveAway(message.ratio);
      case 'drain':
        this.#served.signal ??= message.signal;
        if (message.cause === 'shutdown') this.#served.sockets.clusterEnds();
        else
          this.#served.sockets.handOver((each) => this.#channel.send({ type: 'connection' }, each));
        return void this.#leave(this.options.shutdown);
      case 'released':
        return this.#served.sockets.primaryClosed();
      case 'force':
        return this.#served.force();
      case 'event':
        return this.link.receive(message);
      case 'collect':
        return void this.#sendMetrics();
    }
  }

  /** Asks the primary for a drain. Called when a signal arrives or when the app closes itself. */
  async #askToLeave(signal: string | undefined, closed = false): Promise<void> {
    this.#served.signal ??= signal;
    if (!this.#served.isUp) this.#boot.end(); // so that the exit is not reported as a failed startup
    // A signal is often followed by app.close().
    if (!this.#hasAskedToLeave) await this.#channel.send({ type: 'leaving', closed });
    this.#hasAskedToLeave = true;
    if (!this.#served.isUp) this.#end(0);
  }

  /** Called when the app closes itself. After the drain, the app has time to exit with its own code. */
  async #closeItself(signal: string | undefined): Promise<void> {
    this.#graceMs = CLOSED_GRACE_MS;
    await this.#askToLeave(signal, true);
    await this.#drained;
  }

  /** Drains, then exits. If the app has not started, exits immediately. */
  async #leave(shutdown: ResolvedClusterOptions['shutdown']): Promise<void> {
    if (this.link.state === 'draining') return;
    this.link.state = 'draining';
    this.#leaderRole.resign();
    if (!this.#served.isUp) return this.#end(0);
    const report = await this.#served.drain(shutdown, () => this.#sendLastMetrics());
    await this.#channel.send({ type: 'drained', report });
    await this.#served.endTelemetry(shutdown);
    this.#resolveDrained();
    setTimeout(() => this.#end(report.hookError === null ? this.#exitCode : 1), this.#graceMs);
  }

  /** Drains, then exits, because the app's state is unknown after an uncaught error. */
  #onUncaught(error: unknown): void {
    // The primary logs only the first error.
    const isReported = this.#exitCode === 0 && process.connected;
    const { identity } = this.link;
    process.stderr.write(uncaughtText(error, this.options.log, identity, isReported));
    const requests = runningRequests(this.link.tracker);
    void this.#channel.send({ type: 'fatal', error: reportUncaught(error), requests });
    this.#exitCode = 1;
    this.#served.sockets.clusterContinues();
    this.#served.lameDuck.abort();
    void this.#leave({ ...this.options.shutdown, lameDuckMs: 0 });
  }

  #pong(seq: number): void {
    const { link } = this;
    const stats = link.measure();
    const due = performance.now() - link.metricsAt >= PUSH_METRICS_MS;
    if (due && this.#channel.drained) void this.#sendMetrics();
    // If the primary fails, the last snapshot is used, so it should show the whole cluster.
    if (link.isSnapshotEarly) void link.snapshot();
    void this.#channel.send({ type: 'pong', seq, stats, debugged: inspector.url() !== undefined });
  }

  async #reportHealth(): Promise<void> {
    const verdict = await this.link.checkHealth().catch((error: unknown) => ({
      healthy: false,
      detail: reportError(error).message,
    }));
    await this.#channel.send({ type: 'checked', ...verdict });
  }

  /** Tests whether the offload threads can load their `@CpuBound()` methods. Reports the result. */
  async #reportThreads(): Promise<void> {
    const error = await this.link.threads?.verify().catch(reportError);
    await this.#channel.send({ type: 'verified', error: error ?? null });
  }

  async #sendMetrics(): Promise<void> {
    await this.#channel.send({ type: 'metrics', ...(await this.link.report()) });
  }

  /** Sends the final metrics. The app's shutdown hooks run later and may clear the metrics registry. */
  async #sendLastMetrics(): Promise<void> {
    await Promise.race([this.#sendMetrics(), delay(SNAPSHOT_TIMEOUT_MS)]);
    this.link.isSealed = true;
  }

  async #onOrphaned(): Promise<void> {
    // Without this, node:cluster exits the process when the channel closes.
    if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
    this.#served.signal ??= LEAVE_SIGNAL;
    // A drain may already be running with the options' longer timeouts.
    const { drainTimeoutMs, killTimeoutMs } = ORPHAN_SHUTDOWN;
    setTimeout(() => this.#served.force(), drainTimeoutMs);
    setTimeout(() => this.#end(1), drainTimeoutMs + killTimeoutMs);
    await delay(PRIMARY_EXIT_MS);
    // If the app itself closed the channel, the primary is still alive.
    if (process.ppid !== this.#primaryPid) {
      this.#served.sockets.clusterEnds();
      this.#served.sockets.primaryClosed();
    }
    await this.#leave(ORPHAN_SHUTDOWN);
  }
}
