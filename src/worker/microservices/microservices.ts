import type { Server, Socket } from 'node:net';
import tls from 'node:tls';
import type { WorkerApp } from '../boot/served-app.js';

type RpcHandler = (...args: unknown[]) => unknown;

/** The used part of Nest's server of a transport. Declared here, so that Nest is not imported. */
interface RpcTransport {
  /** A value of Nest's enumeration `Transport`, or the id of a custom transport of the app. */
  readonly transportId?: unknown;
  getHandlerByPattern?(pattern: string): RpcHandler | null;
  /** The server or client of the transport's own library. */
  unwrap?(): unknown;
  /** The server of gRPC, once it was started. */
  readonly grpcClient?: { tryShutdown(done: () => void): void };
}

/** The used part of a handler's context. Only TCP has a socket. */
interface TcpContext {
  getSocketRef?(): { readonly netSocket: Socket };
}

/** The used part of an Observable. Declared here, because rxjs is a dependency of the app. */
interface Observable {
  subscribe(...args: unknown[]): { add(teardown: () => void): void };
}

/** Values of the enumeration `Transport` of @nestjs/microservices. */
const TCP = 0;
const GRPC = 4;

/** How long the drain waits after the last answer, so that the transport's library can send the answer. */
const SENDING_MS = 50;

/**
 * A client that was silent for this time will most likely send nothing while we close the
 * connection. A request sent at that time would fail, and the protocol cannot announce the close.
 */
const QUIET_MS = 100;

/**
 * The microservices of a hybrid app, or the app if it is a microservice. Counts the running handlers
 * of every transport. In a drain it stops gRPC and TCP servers. The app stops other transports, in
 * `ClusterService.onDrain()`.
 */
export class Microservices {
  /** The transports. Only TCP has a server here. */
  readonly #transports = new Map<RpcTransport, Server | undefined>();
  /** The connections over TCP. Clients keep them open and may send at any time. */
  readonly #connections = new Map<Socket, TcpConnection>();
  /** The number of handlers that have not given their last answer. */
  running = 0;
  #endedAt = -Infinity;
  /** The number of gRPC servers that have calls in flight. */
  #stopping = 0;

  /** Follows the microservices that the app has connected so far. */
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

  /** Stops taking messages over gRPC. @returns the TCP servers, which the caller must close. */
  stop(): readonly Server[] {
    const listening: Server[] = [];
    for (const [transport, server] of this.#transports) {
      if (server !== undefined) {
        // Without this flag, Nest would listen again if the transport has `retryAttempts`.
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
   * Ends the TCP connections without unanswered requests.
   *
   * @param patient whether to end only silent connections. If not, also stops reading from the busy
   *   connections, so that no further requests arrive on them.
   */
  closeIdle(patient: boolean): void {
    const now = performance.now();
    for (const connection of this.#connections.values()) connection.closeIfIdle(patient, now);
  }

  /** Whether the drain must wait for a handler, a transport or a connection. */
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

  /** Counts the calls of a handler. The proxy has the handler's properties, where Nest stores metadata. */
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

  /** @param context the second argument of a handler. @returns what to call after its last answer. */
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
  /** The number of handlers that have not given their last answer. */
  running = 0;
  #bytesRead: number;
  /**
   * When the connection last received something, in monotonic ms. Starts only at the first check. By
   * the second check, data that the kernel held before the connection was accepted has been read.
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
    // No further request begins, because its answer could not be sent.
    socket.removeAllListeners('data');
    socket.end();
    // Reads on, because a close with unread data resets the connection and can lose the last answer.
    socket.resume();
  }
}

/** Whether a microservice listens or is subscribed. Subscribing again would consume messages twice. */
export function isConsuming(microservice: unknown): boolean {
  try {
    const client = transportOf(microservice)?.unwrap?.();
    return client !== undefined && (client as Partial<Server>).listening !== false;
  } catch {
    return false; // Nest throws if the transport has no client yet
  }
}

/** The transport of a microservice. Nest 12 has `getTransportServer()`, Nest 11 only the property. */
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
  // Overrides subscribe() on a derived object, because the app may share the stream itself.
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
