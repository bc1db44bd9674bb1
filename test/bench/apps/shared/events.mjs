import { EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import { ClusterEvents } from 'nestjs-cluster/events';
import { connectRedis } from './redis.mjs';
import { monotonicMs } from './monotonic.mjs';

/** Emitted in one worker, heard by the emitters of all. */
export async function eventOperations() {
  const emitter = new EventEmitter2();
  let heard = [];
  emitter.on('told', ({ at }) => heard.push(monotonicMs() - at));
  const watcher = { waitUntilReady: () => Promise.resolve() };
  const provided = new Map([
    [EventEmitter2, emitter],
    [EventEmitterReadinessWatcher, watcher],
  ]);
  const events = new ClusterEvents(provided);
  await events.onModuleInit();
  events.onApplicationBootstrap();
  const [publisher, subscriber] = [connectRedis(), connectRedis()];
  subscriber.on('message', (_channel, text) => {
    const { name, payload } = JSON.parse(text);
    emitter.emit(name, payload);
  });
  await subscriber.subscribe('events');
  const payload = () => ({ at: monotonicMs(), order: 'a-1234', items: [1, 2, 3] });
  return {
    'event hub': () => events.emit('told', payload()),
    'event redis': () =>
      publisher.publish('events', JSON.stringify({ name: 'told', payload: payload() })),
    heard: () => {
      const all = heard;
      heard = [];
      return all;
    },
  };
}
