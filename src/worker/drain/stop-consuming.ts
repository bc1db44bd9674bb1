import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { RpcHandler } from '../microservices/rpc-handlers.js';

/** The used part of Nest's server of a transport. Declared here, so that Nest is not imported. */
export interface RpcTransport {
  /** A value of Nest's enumeration `Transport`, or the id of a custom transport of the app. */
  readonly transportId?: unknown;
  getHandlerByPattern?(pattern: string): RpcHandler | null;
  getHandlers?(): ReadonlyMap<string, { readonly isEventHandler?: boolean }>;
  /** For MQTT: the topic of the requests for a pattern. */
  getRequestPattern?(pattern: string): string;
  /** The client, or clients, of the transport's own library. */
  unwrap?(): unknown;
  /** For TCP: creates the reader of a connection. */
  getSocketInstance?(socket: Socket): unknown;
  /** For TCP: handles a message that was read. */
  handleMessage?(reader: unknown, message: unknown): Promise<unknown>;
}

/** A copy of the enumeration `Transport` of @nestjs/microservices. */
export const TRANSPORT = {
  TCP: 0,
  REDIS: 1,
  NATS: 2,
  MQTT: 3,
  GRPC: 4,
  RMQ: 5,
  KAFKA: 6,
} as const;

/** The used parts of the transports' client libraries. */
interface Clients {
  redis: { unsubscribe(): Promise<unknown>; punsubscribe(): Promise<unknown> };
  mqtt: { unsubscribeAsync?(topic: string): Promise<unknown>; unsubscribe(topic: string): unknown };
  rmq: { consumers?: ReadonlyMap<string, unknown>; cancel(tag: string): Promise<unknown> };
  kafka: { stop(): Promise<unknown> };
}

/** Maximum wait for a broker's confirmation. An unreachable broker confirms nothing and sends nothing. */
const CONFIRM_MS = 1_000;

/**
 * Stops taking messages from a broker. The connection stays open, so that received messages can be
 * answered. Does nothing for TCP (see `rpc-sockets.ts`) and for a custom transport of the app,
 * which takes messages until it is closed.
 *
 * @returns resolves when no new message can come. Never rejects, because a transport that is not
 *   connected gets no messages either.
 */
export async function stopConsuming(transport: RpcTransport): Promise<void> {
  const stopped = stop(transport).catch(() => {});
  if (transport.transportId === TRANSPORT.GRPC) return stopped;
  await Promise.race([stopped, delay(CONFIRM_MS, undefined, { ref: false })]);
}

async function stop(transport: RpcTransport): Promise<void> {
  switch (transport.transportId) {
    case TRANSPORT.REDIS: {
      const [, subscriber] = transport.unwrap!() as [unknown, Clients['redis']];
      const { wildcards } = optionsOf(transport);
      await (wildcards ? subscriber.punsubscribe() : subscriber.unsubscribe());
      return;
    }
    case TRANSPORT.NATS: {
      const subscriptions = Reflect.get(transport, 'subscriptions') as
        readonly { drain(): Promise<void> }[] | undefined;
      await Promise.all(subscriptions?.map((each) => each.drain()) ?? []);
      return;
    }
    case TRANSPORT.MQTT: {
      const client = transport.unwrap!() as Clients['mqtt'];
      await Promise.all(
        [...(transport.getHandlers?.() ?? [])].map(([pattern, { isEventHandler }]) => {
          const topic = isEventHandler
            ? pattern
            : (transport.getRequestPattern?.(pattern) ?? pattern);
          return client.unsubscribeAsync?.(topic) ?? client.unsubscribe(topic);
        }),
      );
      return;
    }
    case TRANSPORT.RMQ: {
      // Nest consumes on amqplib's channel, inside the channel of amqp-connection-manager.
      const wrapper = Reflect.get(transport, 'channel') as { _channel?: Clients['rmq'] };
      const channel = wrapper._channel;
      await Promise.all([...(channel?.consumers?.keys() ?? [])].map((tag) => channel!.cancel(tag)));
      return;
    }
    case TRANSPORT.KAFKA: {
      // stop() also waits for handlers and leaves the group, so that other consumers get the partitions.
      const [, consumer] = transport.unwrap!() as [unknown, Clients['kafka']];
      await consumer.stop();
      return;
    }
    case TRANSPORT.GRPC: {
      // tryShutdown() sends GOAWAY and waits for the calls in flight.
      const server = Reflect.get(transport, 'grpcClient') as
        { tryShutdown(done: () => void): void } | undefined;
      if (server !== undefined) await new Promise<void>((done) => server.tryShutdown(done));
      return;
    }
  }
}

function optionsOf(transport: RpcTransport): { readonly wildcards?: boolean } {
  return (Reflect.get(transport, 'options') as { wildcards?: boolean } | undefined) ?? {};
}
