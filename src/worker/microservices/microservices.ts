import type { Server, Socket } from 'node:net';
import type { WorkerApp } from '../life/worker-app.interface.js';
import { countedHandler, type RpcHandler } from './rpc-handlers.js';
import { RpcSockets } from './rpc-sockets.js';
import { type RpcTransport, stopConsuming, TRANSPORT } from '../drain/stop-consuming.js';

/** Answers are handed to the transport's library without being waited for: time for them to go out. */
const SENDING_MS = 50;

/**
 * The microservices of a hybrid app, or the app that is one: counts the handlers that run, and brings
 * them to an end in a drain. Nothing is imported or wrapped where there are none.
 */
export class Microservices {
  readonly #followed = new Map<RpcTransport, RpcSockets | undefined>();
  /** Handlers whose last answer is not given. */
  running = 0;
  #endedAt = -Infinity;
  /** Transports that are asked to stop. */
  #stopping = 0;

  /** Looks for microservices that the app has connected by now. */
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

  /** No more messages of a broker. @returns what listens for TCP, for the caller to close. */
  stopConsuming(): readonly Server[] {
    const listening: Server[] = [];
    for (const [transport, sockets] of this.#followed) {
      if (sockets !== undefined) {
        // Nest listens again otherwise, where it has `retryAttempts`.
        Reflect.set(transport, 'isManuallyTerminated', true);
        listening.push(sockets.server);
        continue;
      }
      this.#stopping += 1;
      void stopConsuming(transport).finally(() => (this.#stopping -= 1));
    }
    return listening;
  }

  /** See {@link RpcSockets.closeIdle}. */
  closeIdle(patient: boolean): void {
    for (const sockets of this.#followed.values()) sockets?.closeIdle(patient);
  }

  /** Whether there is something to wait for. */
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

/** Whether it listens, or is subscribed, already: a second time it would consume everything twice. */
export function isConsuming(microservice: unknown): boolean {
  try {
    const client = transportOf(microservice)?.unwrap?.();
    return client !== undefined && (client as Partial<Server>).listening !== false;
  } catch {
    return false; // how Nest says that it has no client yet
  }
}

/** `getTransportServer()` is in Nest 12, the property in both. */
function transportOf(microservice: unknown): RpcTransport | undefined {
  const known = microservice as {
    getTransportServer?(): RpcTransport;
    serverInstance?: RpcTransport;
  };
  return known.getTransportServer?.() ?? known.serverInstance;
}

/** The connections of a TCP server; its port is there before it listens. */
function socketsOf(transport: RpcTransport): RpcSockets | undefined {
  if (transport.transportId !== TRANSPORT.TCP) return undefined;
  const open = Reflect.get(transport, 'openSockets') as Iterable<Socket> | undefined;
  return new RpcSockets(transport.unwrap!() as Server, open ?? []);
}

/** A message counts from when it has been read: until its handler begins there may be much to wait for. */
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
    // A request that nobody can answer is not begun: its client learns that it failed, and may try
    // again. An event has no answer, and its client would never learn that it was lost.
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
