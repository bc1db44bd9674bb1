import type { INestApplicationContext } from '@nestjs/common';
import { constants } from 'node:os';
import { createEventLog, lossOf } from '../../contract/log/log.js';
import type { EmitEvent } from '../../contract/log/events.js';
import { EventListeners } from '../../contract/log/event-listeners.js';
import type { ResolvedClusterOptions, FindingName } from '../../contract/options/resolve.js';
import { takeActivatedSocket } from '../../primary/listening/activated-socket.js';
import { BoundSocket } from '../../primary/listening/bound-socket.js';
import type { AppView, Finding } from '../../observe/findings.js';
import { whenFree } from '../../contract/process/in-time.js';
import { onceEach } from '../../contract/errors/errors.js';
import { catchUncaught, reportUncaught } from '../../worker/boot/uncaught.js';
import { listen } from '../../worker/listen/listen.js';
import { HOOKS_TAKEN_OVER, removeNestListeners } from '../../worker/boot/signals.js';
import { ProcessLink } from '../../worker/link/process-link.js';
import { ServedApp } from '../../worker/boot/served-app.js';
import type { AppFactory, StandaloneRuntime } from '../cluster-runtime.interface.js';
import { createAppBy } from '../create-app.js';
import { setCurrentLink } from '../../contract/snapshot/current-link.js';
import { guardOutput } from '../../contract/process/guarded-output.js';
import { NO_HTTP_SERVER } from './role.js';

/** SIGHUP also stops the process, because a single process cannot reload. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

const NO_ADMIN_LISTENER =
  "the admin listener is disabled, because workers: 0 has no primary; use the app's own endpoints";

/**
 * Runs the app in this process, with the same address, endpoints and drain as in a cluster.
 *
 * @throws ClusterAddressError, and any error in creating the app.
 */
export function runStandalone(
  createApp: AppFactory,
  options: ResolvedClusterOptions,
): Promise<StandaloneRuntime<INestApplicationContext>> {
  return new Standalone(options).run(createApp);
}

export type Examine = (app: AppView, start: ExaminedStart) => void;

interface ExaminedStart {
  readonly findings: readonly Finding[];
  readonly warnings: readonly string[];
  /** The option `warnings.ignore`. */
  readonly ignored: readonly FindingName[];
  /** The number of workers in the options, at least 1. */
  readonly workers: number;
}

/** Runs the app in this process on a free port. Calls `examine` when the app listens. */
export async function runExamined(
  createApp: AppFactory,
  options: ResolvedClusterOptions,
  examine: Examine,
): Promise<StandaloneRuntime<INestApplicationContext>> {
  const { findingsOf, viewOf } = await import('../../observe/findings.js');
  const warnings: string[] = [];
  const runtime = await runStandalone(createApp, {
    ...options,
    workers: 0,
    address: { kind: 'tcp', port: 0, host: '127.0.0.1' },
    admin: undefined,
    warnings: { shown: true, ignore: [] },
    on: { warning: ({ message }) => void warnings.push(message) },
  });
  const app = viewOf(runtime.app);
  const {
    workers,
    warnings: { ignore: ignored },
  } = options;
  examine(app, { findings: findingsOf(app), warnings, ignored, workers: Math.max(workers, 1) });
  return runtime;
}

class Standalone {
  readonly #startedAt = performance.now();
  readonly #emit: EmitEvent;
  readonly #warn = (message: string): void => this.#emit('warning', { message });
  readonly #link: ProcessLink;
  readonly #served: ServedApp;
  readonly #leaveSignalsToNest: () => void;
  readonly #leaveErrorsToNode: () => void = () => {};
  #signals = 0;
  #drained: Promise<number> | undefined;

  constructor(private readonly options: ResolvedClusterOptions) {
    const output = guardOutput();
    const log = createEventLog(options.log, output);
    const listeners = new EventListeners(
      (message, error) => log('warning', { message, error }),
      options.on,
    );
    // Skips the link's listeners: if one throws, the link warns again, in an endless loop.
    const logWarning = (message: string): void => {
      log('warning', { message });
      listeners.call('warning', { message });
    };
    this.#link = new ProcessLink({ options, droppedLogLines: output.dropped, logWarning });
    this.#emit = (name, event) => {
      log(name, event);
      listeners.call(name, event);
      this.#link.events.call(name, event);
    };
    if (options.log.format === 'json') {
      // Node would print the error as text, not as JSON.
      this.#leaveErrorsToNode = catchUncaught((error) => {
        log('failed', { message: 'uncaught error', exitCode: 1, error: reportUncaught(error) });
        process.exit(1);
      });
    }
    this.#served = new ServedApp(this.#link, options.keepAliveTimeoutMs, this.#warn);
    this.#served.sockets.clusterEnds(); // no other process holds these sockets
    this.#served.sockets.primaryClosed();
    const warnOnce = onceEach(this.#warn);
    this.#leaveSignalsToNest = removeNestListeners(() => warnOnce(HOOKS_TAKEN_OVER));
  }

  async run(createApp: AppFactory): Promise<StandaloneRuntime<INestApplicationContext>> {
    const { admin, addressGiven } = this.options;
    if (process.env['NOTIFY_SOCKET']) {
      const { tellSystemd } = await import('../tell-systemd.js');
      tellSystemd(this.#link.events, () => true, this.#warn);
    }
    if (admin !== undefined) this.#warn(NO_ADMIN_LISTENER);
    setCurrentLink(this.#link);
    const { app, url } = await this.#start(createApp).catch((error: unknown) => {
      this.#letGo();
      throw error;
    });
    this.#link.state = 'ready';
    for (const signal of STOP_SIGNALS) process.on(signal, this.#onSignal);
    if (url === null && addressGiven) this.#warn(NO_HTTP_SERVER);
    // Logged last, because a program that reads this line may send a signal immediately.
    const reached = { ports: [], endpoints: this.#link.endpoints, adminUrl: null };
    this.#emit('listening', { url, workers: 0, balancing: 'none', ...reached });
    return {
      role: 'standalone',
      app,
      url,
      shutdown: async () => {
        this.#ignoreStopSignals();
        await this.#shutdown();
      },
    };
  }

  async #start(createApp: AppFactory) {
    const { address, addressGiven } = this.options;
    const open = () => whenFree(() => BoundSocket.open(address));
    // The default address is opened only for an app with an HTTP server.
    let socket = takeActivatedSocket(this.options, this.#warn);
    if (socket !== undefined) this.#served.sockets.isHeldBySystemd = true;
    else if (addressGiven) socket = await open();
    let taken = false;
    try {
      const app = await createAppBy(createApp, { worker: this.#link.identity });
      const url = await this.#served.start(
        app,
        async (httpApp) => {
          socket ??= await open();
          taken = true; // from now on, the server closes the socket
          return listen(httpApp, socket.target, socket.handle);
        },
        (signal) => this.#shutdown(signal),
      );
      return { app, url };
    } finally {
      if (!taken) socket?.close();
    }
  }

  #shutdown(signal?: string): Promise<number> {
    this.#served.signal ??= signal;
    this.#link.state = 'draining';
    return (this.#drained ??= this.#drain());
  }

  /** @returns the exit code. */
  async #drain(): Promise<number> {
    const report = await this.#served.drain(this.options.shutdown);
    this.#letGo();
    const loss = lossOf(report);
    if (loss !== undefined) this.#warn(loss);
    const { hookError } = report;
    if (hookError !== null) this.#warn(hookError);
    return hookError === null ? 0 : 1;
  }

  /** Releases all resources, because the process may start another app, as test suites do. */
  #letGo(): void {
    setCurrentLink(undefined);
    this.#served.sockets.stop();
    this.#leaveSignalsToNest();
    this.#leaveErrorsToNode();
    this.#ignoreStopSignals();
    // Without ClusterModule, the app does not end the link.
    this.#link.end();
  }

  #ignoreStopSignals(): void {
    for (const signal of STOP_SIGNALS) process.off(signal, this.#onSignal);
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    const forcedCode = 128 + constants.signals[signal];
    // Before the app has started, a drain is not needed.
    if (!this.#served.isUp) process.exit(forcedCode);
    this.#signals += 1;
    if (this.#signals > 2) process.exit(forcedCode);
    const force = this.#signals === 1 ? 'drain' : 'destroy';
    this.#emit('stopping', { reason: signal, workers: 0, force });
    if (force === 'destroy') return this.#served.force();
    void this.#shutdown(signal).then(async (exitCode) => {
      await this.#served.endTelemetry(this.options.shutdown);
      const code = this.#signals > 1 ? forcedCode : exitCode;
      this.#emit('stopped', { exitCode: code, uptimeMs: performance.now() - this.#startedAt });
      process.exit(code);
    });
  };
}
