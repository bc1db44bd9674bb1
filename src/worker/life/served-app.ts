import type { Server } from 'node:http';
import type { BootPhase, DrainReport } from '../../contract/ipc/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { endTelemetry } from '../../contract/process/telemetry.js';
import { takeOverClose } from '../drain/app-close.js';
import { drain } from '../drain/drain.js';
import { QueueWorkers } from '../drain/queue-workers.js';
import { dropTerminusDelay } from '../drain/terminus-delay.js';
import type { ConnectionLimit } from '../http/connection-limit.js';
import { presetExpressPrototypes } from '../http/express-prototypes.js';
import type { LocalLink } from '../link/local-link.js';
import { addressOf, ALREADY_LISTENING } from '../listen/listen.js';
import { WorkerSockets } from '../listen/worker-sockets.js';
import { isConsuming, Microservices } from '../microservices/microservices.js';
import { type HttpApp, isHttpApp, type WorkerApp } from './worker-app.interface.js';

type Shutdown = ResolvedClusterOptions['shutdown'];

/** The parts of a start that belong to the process. */
export interface StartSteps {
  /** The app is at its next phase. */
  readonly enter?: (phase: BootPhase) => void;
  /** Has the app listen on the address of this process. @returns where it can be reached. */
  readonly listen: (app: HttpApp) => Promise<string>;
  /** The app closes itself: drains the process, and closes the app. */
  readonly leave: (signal: string | undefined) => Promise<unknown>;
}

/** For telemetry to be exported, though the app has used up the time of the drain. */
const LEAST_TELEMETRY_MS = 250;

/** The app of a process, with a primary or without: starts it, limits its connections, and ends it. */
export class ServedApp {
  readonly sockets: WorkerSockets;
  /** Why it ends, for the app's shutdown hooks. */
  signal: string | undefined;
  /** The path for a heap snapshot. */
  snapshotTo: string | undefined;
  /** Ends its open connections now. */
  force!: () => void;
  readonly #forced = new Promise<void>((resolve) => (this.force = resolve));
  /** Ends the lame duck now. */
  cutShort!: () => void;
  readonly #cutShort = new Promise<void>((resolve) => (this.cutShort = resolve));
  readonly #microservices = new Microservices();
  #app: WorkerApp | undefined;
  #close: WorkerApp['close'] | undefined;
  /** When all of it has to be over; monotonic ms. */
  #dueAt = 0;

  constructor(
    private readonly link: LocalLink,
    limit: ConnectionLimit,
    private readonly warn: (message: string) => void,
  ) {
    this.sockets = new WorkerSockets((server) => link.followServer(server), limit);
  }

  /** Whether it has started, and ends by a drain alone. */
  get isUp(): boolean {
    return this.#close !== undefined;
  }

  /**
   * Initialises an app that has been created, and opens it to its clients.
   *
   * @returns where it can be reached; `null` without an HTTP server.
   */
  async start(app: WorkerApp, steps: StartSteps): Promise<string | null> {
    this.#microservices.follow(app);
    const url = isHttpApp(app) ? await this.#open(app, steps) : await this.#init(app, steps);
    this.#microservices.follow(app); // its hooks may have connected some
    const delayed = dropTerminusDelay(app);
    if (delayed !== undefined) this.warn(delayed);
    this.#app = app;
    this.#close = takeOverClose(app, steps.leave);
    return url;
  }

  async #init(app: WorkerApp, { enter }: StartSteps): Promise<null> {
    enter?.('init');
    // A microservice initialises itself as it begins to listen, and runs its hooks twice otherwise.
    if (app.listen === undefined) await app.init();
    else if (!isConsuming(app)) await app.listen();
    return null;
  }

  async #open(app: HttpApp, { enter, listen }: StartSteps): Promise<string> {
    presetExpressPrototypes(app);
    const server = app.getHttpServer() as Server;
    this.sockets.servers.add(server);
    let url: string;
    if (server.listening) {
      this.warn(ALREADY_LISTENING);
      url = addressOf(server);
    } else {
      enter?.('init');
      await app.init();
      enter?.('listen');
      url = await listen(app);
      enter?.('init'); // whatever fails from here on, the address could be had
    }
    this.sockets.mayAdopt(server);
    return url;
  }

  /**
   * Drains the process, then closes the app.
   *
   * @param beforeClose is called when all requests are over and the app is still whole.
   */
  drain(shutdown: Shutdown, beforeClose = async (): Promise<void> => {}): Promise<DrainReport> {
    const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = shutdown;
    this.#dueAt = performance.now() + lameDuckMs + drainTimeoutMs + killTimeoutMs;
    const parts = {
      close: this.#close!,
      link: this.link,
      sockets: this.sockets,
      microservices: this.#microservices,
      queues: new QueueWorkers(this.#app),
      cutShort: this.#cutShort,
      forced: this.#forced,
      beforeClose,
      signal: () => this.signal,
    };
    return drain(parts, shutdown);
  }

  /** Sends the heap snapshot to its asker. No request is left that it could delay. */
  async leaveSnapshot(): Promise<void> {
    if (this.snapshotTo === undefined) return;
    const { sendHeapSnapshot } = await import('../watchdog/heap-snapshot.js');
    await Promise.race([sendHeapSnapshot(this.snapshotTo), this.#forced]);
  }

  /**
   * The last thing that happens in the process: exports what its requests and its hooks have left
   * of spans, metrics and logs.
   */
  async endTelemetry({ killTimeoutMs }: Shutdown): Promise<void> {
    const left = Math.min(this.#dueAt - performance.now(), killTimeoutMs);
    const problem = await endTelemetry(Math.max(left, LEAST_TELEMETRY_MS));
    if (problem !== undefined) this.warn(problem);
  }
}
