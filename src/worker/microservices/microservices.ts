import type { Server, Socket } from 'node:net';
import type { WorkerApp } from '../life/worker-app.interface.js';
import { countedHandler, type RpcHandler } from './rpc-handlers.js';
import { RpcSockets } from './rpc-sockets.js';
import { type RpcTransport, stopConsuming, TRANSPORT } from '../drain/stop-consuming.js';

/** How long the drain waits after the last answer, so that the transport's library can send the answer. */
const SENDING_MS = 50;

/**
 * The microservices of a hybrid app, or the app if it is a microservice. Counts the running handlers,
 * and stops the microservices in a drain. Without microservices, nothing is imported or wrapped.
 */
export class Microservices {
  readonly #followed = new Map<RpcTransport, RpcSockets | undefined>();
  /** The number of handlers that have not given their last answer. */
  running = 0;
  #endedAt = -Infinity;
  /** The number of transports that were asked to stop and have not stopped. */
  #stopping = 0;

  /** Follows the microservices that the app has connected so far. */
  follow(app: Pick<WorkerApp, 'getMicroservices'>): void {
    for (const microservice of app.getMicroservices?.() ?? [app]) {
      const transport = transportOf(microservice);
      if (transport === undefined || this.#followed.has(transport)) continue;
      const sockets = socketsOf(transport);
      this.#followed.set(transport, sockets);
      if (sockets !== undefined) followMessages(transport, sockets);
      this.#countHandlers(transport, sockets);
    }
  }

  /** Stops taking messages from brokers. @returns the TCP servers, which the caller must close. */
  stopConsuming(): readonly Server[] {
    const listening: Server[] = [];
    for (const [transport, sockets] of this.#followed) {
      if (sockets !== undefined) {
        // Without this flag, Nest would listen again if the transport has `retryAttempts`.
        Reflect.set(transport, 'isManuallyTerminated', true);
        listening.push(sockets.server);
        continue;
      }
      this.#stopping += 1;
      void stopConsuming(transport).finally(() => (this.#stopping -= 1));
    }
    return listening;
  }

  closeIdle(patient: boolean): void {
    for (const sockets of this.#followed.values()) sockets?.closeIdle(patient);
  }

  /** Whether the drain must wait for a handler, a transport or a connection. */
  get busy(): boolean {
    return (
      this.running > 0 ||
      this.#stopping > 0 ||
      performance.now() - this.#endedAt < SENDING_MS ||
      [...this.#followed.values()].some((sockets) => sockets !== undefined && sockets.open > 0)
    );
  }

  #countHandlers(transport: RpcTransport, sockets: RpcSockets | undefined): void {
    const find = transport.getHandlerByPattern?.bind(transport);
    if (find === undefined) return;
    const counted = new WeakMap<RpcHandler, RpcHandler>();
    const begin = (args: readonly unknown[]) => this.#begin(args, sockets);
    transport.getHandlerByPattern = (pattern) => {
      const handler = find(pattern);
      if (!handler) return handler;
      let wrapped = counted.get(handler);
      if (wrapped === undefined) counted.set(handler, (wrapped = countedHandler(handler, begin)));
      return wrapped;
    };
  }

  #begin([, context]: readonly unknown[], sockets: RpcSockets | undefined): () => void {
    this.running += 1;
    const socket = sockets && socketOf(context);
    const endOnSocket = socket && sockets.of(socket).begin();
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.running -= 1;
      this.#endedAt = performance.now();
      endOnSocket?.();
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

/** The connections of a TCP transport. The transport's server exists before it listens. */
function socketsOf(transport: RpcTransport): RpcSockets | undefined {
  if (transport.transportId !== TRANSPORT.TCP) return undefined;
  const open = Reflect.get(transport, 'openSockets') as Iterable<Socket> | undefined;
  return new RpcSockets(transport.unwrap!() as Server, open ?? []);
}

/** Counts a message as running as soon as it was read, because its handler may begin much later. */
function followMessages(transport: RpcTransport, sockets: RpcSockets): void {
  const readerOf = transport.getSocketInstance?.bind(transport);
  const handle = transport.handleMessage?.bind(transport);
  if (readerOf === undefined || handle === undefined) return;
  transport.getSocketInstance = (socket) => {
    const reader = readerOf(socket);
    sockets.of(socket).readBy(reader);
    return reader;
  };
  transport.handleMessage = async (reader, message) => {
    const { netSocket } = reader as { netSocket?: Socket };
    const connection = netSocket && sockets.of(netSocket);
    // Drops a request whose connection has ended: the client sees the failure and can try again. An
    // event is handled anyway. It has no answer, so the client would not notice the loss.
    if (connection?.ended === true && (message as { id?: unknown }).id !== undefined) return;
    const end = connection?.begin();
    try {
      return await handle(reader, message);
    } finally {
      end?.();
    }
  };
}

function socketOf(context: unknown): Socket | undefined {
  return (context as { getSocketRef?(): { netSocket?: Socket } } | undefined)?.getSocketRef?.()
    .netSocket;
}
