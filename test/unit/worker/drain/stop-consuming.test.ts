import { afterEach, beforeEach, describe, expect, it, type Mock, vi } from 'vitest';
import {
  type RpcTransport,
  stopConsuming,
  TRANSPORT,
} from '../../../../src/worker/drain/stop-consuming.js';
import { NEST_MICROSERVICES } from '../../../support/nest-microservices.js';

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] }));
afterEach(() => vi.useRealTimers());

/** Nest's server, connected to fakes: its constructor would ask for the library of its transport. */
function server(type: { prototype: object }, transportId: number, fields: object): RpcTransport {
  const created = Object.create(type.prototype) as RpcTransport;
  return Object.assign(created, { transportId, ...fields });
}

const handlers = new Map([
  ['ask', { isEventHandler: false }],
  ['note', { isEventHandler: true }],
]);

describe.each(NEST_MICROSERVICES)(
  'the end of consuming in Nest $nest',
  ({ microservices: servers }) => {
    it.each([
      { wildcards: false, asked: 'unsubscribe' },
      { wildcards: true, asked: 'punsubscribe' },
    ])('unsubscribes from Redis, and goes on publishing ($asked)', async ({ wildcards, asked }) => {
      const client = () => ({ unsubscribe: vi.fn(), punsubscribe: vi.fn() });
      const [subClient, pubClient] = [client(), client()];
      const fields = { subClient, pubClient, options: { wildcards } };

      await stopConsuming(server(servers.ServerRedis, TRANSPORT.REDIS, fields));

      const calls = (of: typeof subClient) =>
        Object.entries(of).flatMap(([name, { mock }]) => mock.calls.map(() => name));
      expect(calls(subClient)).toEqual([asked]);
      expect(calls(pubClient)).toEqual([]);
    });

    const calls = (spy: Mock) => spy.mock.calls;

    it('drains each subscription of NATS', async () => {
      const [subscriptions, natsClient] = [
        [{ drain: vi.fn() }, { drain: vi.fn() }],
        { close: vi.fn() },
      ];
      const fields = { natsClient, subscriptions };
      await stopConsuming(server(servers.ServerNats, TRANSPORT.NATS, fields));
      expect(subscriptions.map(({ drain }) => calls(drain))).toEqual([[[]], [[]]]);
      expect(natsClient.close).not.toHaveBeenCalled();
    });

    it('unsubscribes from the topics of MQTT', async () => {
      const mqttClient = { unsubscribe: vi.fn(), end: vi.fn() };
      const fields = { mqttClient, messageHandlers: handlers };
      await stopConsuming(server(servers.ServerMqtt, TRANSPORT.MQTT, fields));
      expect(calls(mqttClient.unsubscribe)).toEqual([['ask'], ['note']]);
      expect(mqttClient.end).not.toHaveBeenCalled();
    });

    it('cancels the consumers of a RabbitMQ channel, and leaves that open for acknowledgements', async () => {
      const amqplib = { consumers: new Map([['tag', () => {}]]), cancel: vi.fn() };
      const channel = { _channel: amqplib, close: vi.fn() };
      const fields = { server: { close: vi.fn() }, channel };
      await stopConsuming(server(servers.ServerRMQ, TRANSPORT.RMQ, fields));
      expect(calls(amqplib.cancel)).toEqual([['tag']]);
      expect(channel.close).not.toHaveBeenCalled();
    });

    it('stops the consumer of Kafka, and leaves the producer', async () => {
      const [consumer, producer] = [{ stop: vi.fn() }, { disconnect: vi.fn() }];
      const fields = { client: {}, consumer, producer };
      await stopConsuming(server(servers.ServerKafka, TRANSPORT.KAFKA, fields));
      expect(consumer.stop).toHaveBeenCalledOnce();
      expect(producer.disconnect).not.toHaveBeenCalled();
    });

    it('lets the calls of gRPC end, however long they take', async () => {
      let ended = () => {};
      const grpcClient = { tryShutdown: (done: () => void) => void (ended = done) };
      let stopped = false;

      void stopConsuming(server(servers.ServerGrpc, TRANSPORT.GRPC, { grpcClient })).then(
        () => (stopped = true),
      );

      await vi.advanceTimersByTimeAsync(60_000);
      expect(stopped).toBe(false);
      ended();
      await vi.advanceTimersByTimeAsync(0);
      expect(stopped).toBe(true);
    });

    it('is over where the microservice was never started', async () => {
      for (const never of [
        server(servers.ServerRedis, TRANSPORT.REDIS, {}),
        server(servers.ServerGrpc, TRANSPORT.GRPC, {}),
      ]) {
        await expect(stopConsuming(never)).resolves.toBeUndefined();
      }
    });
  },
);

describe('a transport of the app that is none of Nest', () => {
  it('is left alone', async () => {
    const close = vi.fn();

    await stopConsuming({ transportId: Symbol('own'), close } as RpcTransport);

    expect(close).not.toHaveBeenCalled();
  });
});
