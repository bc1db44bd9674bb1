import { Server } from 'node:http';
import type { DrainReport } from '../../contract/messages.js';
import type { ResolvedClusterOptions } from '../../contract/options/resolve.js';
import { endTelemetry } from '../../contract/process/telemetry.js';
import { drain } from '../drain/drain.js';
import { presetExpressPrototypes } from '../listen/express-prototypes.js';
import type { ProcessLink } from '../link/process-link.js';
import { addressOf, ALREADY_LISTENING } from '../listen/listen.js';
import { WorkerSockets } from '../listen/sockets.js';
import { isConsuming, Microservices } from '../microservices/microservices.js';

type Shutdown = ResolvedClusterOptions['shutdown'];

/** Telemetry always has this long for its last export, even after a drain that timed out. */
const LEAST_TELEMETRY_MS = 250;

/** Node's default, in ms. A server with another value was configured by the app. */
const NODE_KEEP_ALIVE_MS = new Server().keepAliveTimeout;

/** Starts, drains and closes the app of a process, with or without a primary. */
export class ServedApp {
  readonly sockets: WorkerSockets;
  readonly microservices = new Microservices();
  /** The signal that the process received. The app's shutdown hooks get it. */
  signal: string | undefined;
  /** Aborted to end the lame duck phase early. */
  readonly lameDuck = new AbortController();
  /** Aborted to end the drain early. */
  readonly forced = new AbortController();
  /** Missing until the app has started. */
  app: WorkerApp | undefined;
  /** The app's own `close()`. */
  close!: WorkerApp['close'];
  /** The deadline of the shutdown, in monotonic ms. */
  #dueAt = 0;

  constructor(
    readonly link: ProcessLink,
    private readonly keepAliveTimeoutMs: number,
    private readonly warn: (message: string) => void,
  ) {
    this.sockets = new WorkerSockets(link.tracker, warn);
  }

  /** Whether the app has started. If so, the process must drain before it ends. */
  get isUp(): boolean {
    return this.app !== undefined;
  }

  /**
   * Initialises the app and makes it listen.
   *
   * @param listen makes the app listen on the address of this process. Returns the app's URL.
   * @param leave drains the process and closes the app. Called when the app closes itself.
   * @returns the app's URL, or `null` without an HTTP server.
   */
  async start(
    app: WorkerApp,
    listen: (app: HttpApp) => Promise<string>,
    leave: (signal: string | undefined) => Promise<unknown>,
  ): Promise<string | null> {
    this.microservices.follow(app);
    const url = isHttpApp(app) ? await this.#open(app, listen) : await this.#init(app);
    this.microservices.follow(app); // the app's hooks may have connected more microservices
    this.app = app;
    this.close = takeOverClose(app, leave);
    return url;
  }

  async #init(app: WorkerApp): Promise<null> {
    // listen() also initialises a microservice. Calling init() too would run the app's hooks twice.
    if (app.listen === undefined) await app.init();
    else if (!isConsuming(app)) await app.listen();
    return null;
  }

  async #open(app: HttpApp, listen: (app: HttpApp) => Promise<string>): Promise<string> {
    presetExpressPrototypes(app);
    const server = app.getHttpServer() as Server;
    this.sockets.add(server);
    let url: string;
    if (server.listening) {
      this.warn(ALREADY_LISTENING);
      url = addressOf(server);
    } else {
      await app.init();
      // Fastify and many apps set their own value. An HTTP/2 server has none.
      if (server.keepAliveTimeout === NODE_KEEP_ALIVE_MS) {
        server.keepAliveTimeout = this.keepAliveTimeoutMs;
      }
      url = await listen(app);
    }
    this.sockets.mayAdopt();
    return url;
  }

  /** Ends the drain now and destroys all open connections. */
  force(): void {
    this.lameDuck.abort();
    this.forced.abort();
  }

  /** Drains the process, then closes the app. See {@link drain}. */
  drain(shutdown: Shutdown, beforeClose = async (): Promise<void> => {}): Promise<DrainReport> {
    const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = shutdown;
    this.#dueAt = performance.now() + lameDuckMs + drainTimeoutMs + killTimeoutMs;
    return drain(this, shutdown, beforeClose);
  }

  /**
   * Exports the spans, metrics and logs of the last requests and of the shutdown hooks. Must be the
   * last action of the process.
   */
  async endTelemetry({ killTimeoutMs }: Shutdown): Promise<void> {
    const left = Math.min(this.#dueAt - performance.now(), killTimeoutMs);
    const problem = await endTelemetry(Math.max(left, LEAST_TELEMETRY_MS));
    if (problem !== undefined) this.warn(problem);
  }
}

type Closable = Pick<WorkerApp, 'close'>;

/**
 * Drains the process first if the app calls `app.close()` itself, for example in its own SIGTERM
 * listener. Otherwise requests in flight would lose the database, and the app's hooks would run
 * again after the drain.
 *
 * @returns the original `app.close()`.
 */
function takeOverClose(
  app: Closable,
  leave: (signal?: string) => Promise<unknown>,
): Closable['close'] {
  const own = Object.getOwnPropertyDescriptor(app, 'close')?.value as Closable['close'] | undefined;
  const close = own ?? (Reflect.get(Object.getPrototypeOf(app) as object, 'close') as typeof own)!;
  let isOurs = false;
  // Nest's app is a proxy that ignores assignments. The proxy calls methods with the real app as `this`.
  Object.defineProperty(app, 'close', {
    configurable: true,
    writable: true,
    async value(this: Closable, signal?: string): Promise<void> {
      if (isOurs) return close.call(this, signal);
      await leave(signal);
    },
  });
  return (signal) => {
    isOurs = true;
    try {
      return app.close(signal);
    } finally {
      isOurs = false;
    }
  };
}

/** The parts of Nest applications, microservices and application contexts used here. */
export interface WorkerApp {
  init(): Promise<unknown>;
  /** @param signal the name of the signal, for the app's shutdown hooks. */
  close(signal?: string): Promise<void>;
  /** Missing in application contexts. Microservices take no address. */
  listen?(port?: number | string, host?: string): Promise<unknown>;
  getHttpServer?(): unknown;
  getHttpAdapter?(): { getType(): string; getInstance(): unknown };
  getMicroservices?(): readonly unknown[];
}

export type HttpApp = WorkerApp & Required<Pick<WorkerApp, 'listen' | 'getHttpServer'>>;

/** Microservices and application contexts have no HTTP server. */
function isHttpApp(app: WorkerApp): app is HttpApp {
  return typeof app.getHttpServer === 'function';
}
