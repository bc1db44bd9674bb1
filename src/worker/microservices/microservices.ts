import type { Server, Socket } from 'node:net';
import tls from 'node:tls';
import type { WorkerApp } from '../boot/served-app.js';

type RpcHandler = (...args: unknown[]) => unknown;

/** The part of Nest's transport server that is used here. Nest is not imported. */
interface RpcTransport {
  /** A value of Nest's enum `Transport`, or the id of a custom transport. */
  readonly transportId?: unknown;
  getHandlerByPattern?(pattern: string): RpcHandler | null;
  /** The server or client of the transport's own library. */
  unwrap?(): unknown;
  /** The gRPC server. Set when it is started. */
  readonly grpcClient?: { tryShutdown(done: () => void): void };
}

/** The part of a handler's context that is used here. Only TCP has a socket. */
interface TcpContext {
  getSocketRef?(): { readonly netSocket: Socket };
}

/** The part of an Observable that is used here. rxjs is not imported. */
interface Observable {
  subscribe(...args: unknown[]): { add(teardown: () => void): void };
}

/** Values of the enum `Transport` of @nestjs/microservices. */
const TCP = 0;
const GRPC = 4;

/** The drain waits this long after the last response, so that the transport's library can send it. */
const SENDING_MS = 50;

/**
 * A connection is closed only once its client has been silent this long. Nest's TCP protocol cannot
 * announce the close, so a request sent at that moment would fail.
 */
const QUIET_MS = 100;

/**
 * The microservices of a hybrid app, or the app itself if it is a microservice. Counts the running
 * handlers of every transport. A drain stops gRPC and TCP servers. The app must stop other
 * transports in `ClusterService.onDrain()`.
 */
export class Microservices {
  /** Values: the server for a TCP transport, otherwise `undefined`. */
  readonly #transports = new Map<RpcTransport, Server | undefined>();
  /** TCP connections. Clients keep them open and may send at any time. */
  readonly #connections = new Map<Socket, TcpConnection>();
  /** The number of running handlers. A handler that returns a stream runs until the stream ends. */
  running = 0;
  #endedAt = -Infinity;
  /** The number of gRPC servers that still have calls in flight. */
  #stopping = 0;

  /** Adds the microservices that the app has connected so far. */
  follow(app: Pick<WorkerApp, 'getMicroservices'>): void {
    for (const microservice of app.getMicroservices?.() ?? [app]) {
      const transport = transportOf(microservice);
      if (transport === undefined || this.#transports.has(transport)) continue;
      const server = transport.transportId === TCP ? (transport.unwrap!() as Server) : undefined;
      const accepted = server instanceof tls.Server ? 'secureConnection' : 'connection';
      server?.on(accepted, (socket: Socket) => void this.#connectionOf(socket));
      this.#transports.set(transport, server);
      this.#countHandlers(transport);
    }
  }

  /** Stops the gRPC servers. @returns the TCP servers, which the caller must close. */
  stop(): readonly Server[] {
    const listening: Server[] = [];
    for (const [transport, server] of this.#transports) {
      if (server !== undefined) {
        // Without this flag, a transport with `retryAttempts` would listen again.
        Reflect.set(transport, 'isManuallyTerminated', true);
        listening.push(server);
      } else if (transport.transportId === GRPC && transport.grpcClient !== undefined) {
        this.#stopping += 1;
        // Sends GOAWAY, and waits for the calls in flight.
        transport.grpcClient.tryShutdown(() => (this.#stopping -= 1));
      }
    }
    return listening;
  }

  /**
   * Closes the TCP connections without a running handler.
   *
   * @param patient closes only silent connections. If `false`, also stops reading from busy
   *   connections, so that no more requests arrive on them.
   */
  closeIdle(patient: boolean): void {
    const now = performance.now();
    for (const connection of this.#connections.values()) connection.closeIfIdle(patient, now);
  }

  /** Whether a handler, a gRPC server or a connection keeps the drain waiting. */
  get busy(): boolean {
    const isSending = performance.now() - this.#endedAt < SENDING_MS;
    return this.running > 0 || this.#stopping > 0 || isSending || this.#connections.size > 0;
  }

  #connectionOf(socket: Socket): TcpConnection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new TcpConnection(socket);
      if (socket.destroyed) return connection;
      this.#connections.set(socket, connection);
      socket.once('close', () => this.#connections.delete(socket));
    }
    return connection;
  }

  #countHandlers(transport: RpcTransport): void {
    const find = transport.getHandlerByPattern?.bind(transport);
    if (find === undefined) return;
    const counted = new WeakMap<RpcHandler, RpcHandler>();
    transport.getHandlerByPattern = (pattern) => {
      const handler = find(pattern);
      if (!handler) return handler;
      let wrapped = counted.get(handler);
      if (wrapped === undefined) counted.set(handler, (wrapped = this.#counted(handler)));
      return wrapped;
    };
  }

  /** A proxy that counts the handler's calls. It keeps the handler's properties, which Nest reads. */
  #counted(handler: RpcHandler): RpcHandler {
    return new Proxy(handler, {
      apply: (target, self, args: unknown[]) => {
        const end = this.#begin(args[1]);
        try {
          return untilOver(Reflect.apply(target, self, args), end);
        } catch (error) {
          end();
          throw error;
        }
      },
    });
  }

  /** @param context the handler's second argument. @returns a function to call when the handler is done. */
  #begin(context: unknown): () => void {
    const reader = (context as TcpContext | undefined)?.getSocketRef?.();
    const connection = reader && this.#connectionOf(reader.netSocket);
    this.running += 1;
    if (connection !== undefined) connection.running += 1;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.running -= 1;
      this.#endedAt = performance.now();
      if (connection !== undefined) connection.running -= 1;
    };
  }
}

class TcpConnection {
  running = 0;
  #bytesRead: number;
  /**
   * When the connection last received data, in monotonic ms. Starts at the first check, because
   * data sent before the accept may be unread until then.
   */
  #quietSince: number | undefined;

  constructor(private readonly socket: Socket) {
    this.#bytesRead = socket.bytesRead;
  }

  closeIfIdle(patient: boolean, now: number): void {
    const { socket } = this;
    if (socket.writableEnded) return;
    if (this.running > 0 || this.#bytesRead !== socket.bytesRead) this.#quietSince = now;
    this.#bytesRead = socket.bytesRead;
    if (patient && now - (this.#quietSince ??= now) < QUIET_MS) return;
    if (this.running > 0 || socket.writableLength > 0) {
      if (!patient) socket.pause();
      return;
    }
    // Discards further requests, because they could not be answered.
    socket.removeAllListeners('data');
    socket.end();
    // Closing with unread data would reset the connection, and the last response could be lost.
    socket.resume();
  }
}

/** Whether a microservice is already listening or subscribed. Subscribing again duplicates messages. */
export function isConsuming(microservice: unknown): boolean {
  try {
    const client = transportOf(microservice)?.unwrap?.();
    return client !== undefined && (client as Partial<Server>).listening !== false;
  } catch {
    return false; // Nest throws if the transport has no client yet
  }
}

/** Nest 12 has `getTransportServer()`, Nest 11 only the property. */
function transportOf(microservice: unknown): RpcTransport | undefined {
  const known = microservice as {
    getTransportServer?(): RpcTransport;
    serverInstance?: RpcTransport;
  };
  return known.getTransportServer?.() ?? known.serverInstance;
}

function untilOver(result: unknown, end: () => void): unknown {
  if (result instanceof Promise) {
    return result.then(
      (value) => untilOver(value, end),
      (error: unknown) => {
        end();
        throw error;
      },
    );
  }
  if (!isObservable(result)) {
    end();
    return result;
  }
  // Overrides subscribe() on a derived object, because the app may use the stream elsewhere.
  return Object.create(result, {
    subscribe: {
      value(...args: unknown[]) {
        const subscription = result.subscribe(...args);
        subscription.add(end);
        return subscription;
      },
    },
  }) as Observable;
}

function isObservable(value: unknown): value is Observable {
  const known = (value ?? {}) as { lift?: unknown; subscribe?: unknown };
  return typeof known.lift === 'function' && typeof known.subscribe === 'function';
}
