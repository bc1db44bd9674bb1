import type { Server, Socket } from 'node:net';
import type { WorkerApp } from '../boot/served-app.js';
import { TcpConnections } from './tcp-connections.js';

type RpcHandler = (...args: unknown[]) => unknown;

/** The used part of Nest's server of a transport. Declared here, so that Nest is not imported. */
interface RpcTransport {
  /** A value of Nest's enumeration `Transport`, or the id of a custom transport of the app. */
  readonly transportId?: unknown;
  getHandlerByPattern?(pattern: string): RpcHandler | null;
  /** The server or client of the transport's own library. */
  unwrap?(): unknown;
}

/** The used part of a handler's context. Only TCP has a socket. */
interface TcpContext {
  getSocketRef?(): { readonly netSocket: Socket };
}

/** The used part of an Observable. Declared here, because rxjs is a dependency of the app. */
interface Observable {
  subscribe(...args: unknown[]): { add(teardown: () => void): void };
}

interface GrpcServer {
  tryShutdown(done: () => void): void;
}

/** Values of the enumeration `Transport` of @nestjs/microservices. */
const TCP = 0;
const GRPC = 4;

/** How long the drain waits after the last answer, so that the transport's library can send the answer. */
const SENDING_MS = 50;

/**
 * The microservices of a hybrid app, or the app if it is a microservice. Counts the running handlers
 * of every transport. In a drain it stops gRPC and TCP servers. The app stops other transports, in
 * `ClusterService.onDrain()`.
 */
export class Microservices {
  readonly #followed = new Map<RpcTransport, TcpConnections | undefined>();
  /** The number of handlers that have not given their last answer. */
  running = 0;
  #endedAt = -Infinity;
  /** The number of gRPC servers that have calls in flight. */
  #stopping = 0;

  /** Follows the microservices that the app has connected so far. */
  follow(app: Pick<WorkerApp, 'getMicroservices'>): void {
    for (const microservice of app.getMicroservices?.() ?? [app]) {
      const transport = transportOf(microservice);
      if (transport === undefined || this.#followed.has(transport)) continue;
      const isTcp = transport.transportId === TCP;
      const connections = isTcp ? new TcpConnections(transport.unwrap!() as Server) : undefined;
      this.#followed.set(transport, connections);
      this.#countHandlers(transport, connections);
    }
  }

  /** Stops taking messages over gRPC. @returns the TCP servers, which the caller must close. */
  stop(): readonly Server[] {
    const listening: Server[] = [];
    for (const [transport, connections] of this.#followed) {
      if (connections !== undefined) {
        // Without this flag, Nest would listen again if the transport has `retryAttempts`.
        Reflect.set(transport, 'isManuallyTerminated', true);
        listening.push(connections.server);
      } else if (transport.transportId === GRPC) {
        const server = Reflect.get(transport, 'grpcClient') as GrpcServer | undefined;
        if (server === undefined) continue; // it was never started
        this.#stopping += 1;
        // Sends GOAWAY, and waits for the calls in flight.
        server.tryShutdown(() => (this.#stopping -= 1));
      }
    }
    return listening;
  }

  closeIdle(patient: boolean): void {
    for (const connections of this.#followed.values()) connections?.closeIdle(patient);
  }

  /** Whether the drain must wait for a handler, a transport or a connection. */
  get busy(): boolean {
    return (
      this.running > 0 ||
      this.#stopping > 0 ||
      performance.now() - this.#endedAt < SENDING_MS ||
      [...this.#followed.values()].some((connections) => (connections?.open ?? 0) > 0)
    );
  }

  #countHandlers(transport: RpcTransport, connections: TcpConnections | undefined): void {
    const find = transport.getHandlerByPattern?.bind(transport);
    if (find === undefined) return;
    const counted = new WeakMap<RpcHandler, RpcHandler>();
    const begin = ([, context]: readonly unknown[]) => this.#begin(connections, context);
    transport.getHandlerByPattern = (pattern) => {
      const handler = find(pattern);
      if (!handler) return handler;
      let wrapped = counted.get(handler);
      if (wrapped === undefined) counted.set(handler, (wrapped = countedHandler(handler, begin)));
      return wrapped;
    };
  }

  #begin(connections: TcpConnections | undefined, context: unknown): () => void {
    const reader = (context as TcpContext | undefined)?.getSocketRef?.();
    const connection = reader && connections?.of(reader.netSocket);
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

/**
 * Wraps a handler to report when it begins and when it has given its last answer. The proxy keeps
 * all properties of the function, because Nest stores the handler's metadata there.
 *
 * @param begin is called with the handler's arguments. Returns a function to call at the end.
 */
function countedHandler(
  handler: RpcHandler,
  begin: (args: readonly unknown[]) => () => void,
): RpcHandler {
  return new Proxy(handler, {
    apply(target, self, args: unknown[]) {
      const end = begin(args);
      try {
        return untilOver(Reflect.apply(target, self, args), end);
      } catch (error) {
        end();
        throw error;
      }
    },
  });
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
