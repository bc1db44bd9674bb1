import { EventEmitter2 } from '@nestjs/event-emitter';
import { ClusterEvents } from '../../src/extras/events/index.js';
import { HubClient } from '../../src/hub/client/hub-client.js';
import { HubCore, type Peer, type Said } from '../../src/hub/hub-core.js';
import { type FromHub, NO_BODY } from '../../src/hub/protocol.js';

const KEY = Symbol.for('nestjs-cluster.hub');
const holder = globalThis as { [KEY]?: HubClient | undefined };

/** What is made from now on belongs to the worker that has this connection. */
export function enterWorker(hub: HubClient): void {
  holder[KEY] = hub;
}

export function forgetHub(): void {
  holder[KEY] = undefined;
}

/** Everything that is due in microtasks has happened. */
export const idle = () => new Promise((resolve) => setImmediate(resolve));

/** The connection of a worker to a hub, without sockets: its frames are delivered in microtasks. */
export function connect(core: HubCore, slot: number) {
  const state = { congested: false };
  const frames = { failed: (thrown: unknown): void => void thrown };
  /** What does not reach the hub, by its `op`. */
  const lost = new Set<string>();
  const hub = new HubClient((events) => {
    const peer: Peer = {
      slot,
      get congested() {
        return state.congested;
      },
      unsentBytes: 0,
      send: (header: FromHub, body = NO_BODY) =>
        queueMicrotask(() => {
          try {
            events.frame(header, body);
          } catch (error) {
            frames.failed(error);
          }
        }),
    };
    queueMicrotask(() => events.opened('a'));
    return {
      send: (header, body = NO_BODY) => {
        if (!lost.has(header.op)) core.receive(peer, header as Said, body);
        return true;
      },
    };
  });
  return { hub, state, frames, lost };
}

/** A worker of that slot whose app has started. */
export async function startWorker(core: HubCore, slot: number, emitter = new EventEmitter2()) {
  const connection = connect(core, slot);
  enterWorker(connection.hub);
  const events = new ClusterEvents(emitter);
  await events.onModuleInit();
  events.onApplicationBootstrap();
  await idle();
  return { ...connection, emitter, events };
}

/** Workers of one hub. */
export async function startWorkers(count: number) {
  const core = new HubCore();
  const workers = [];
  for (let slot = 0; slot < count; slot += 1) workers.push(await startWorker(core, slot));
  return workers;
}
