import type { ModuleRef } from '@nestjs/core';
import { EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import { HubClient, type LineEvents } from '../../../src/client/hub-client.js';
import { ClusterEvents } from '../../../src/events/index.js';
import { HubCore, type WorkerMessage } from '../../../src/thread/hub-core.js';
import { NO_BODY } from '../../../src/wire/frame-socket.js';
import type { FromHub, Peer, ToHub } from '../../../src/wire/protocol.js';

const KEY = Symbol.for('nestjs-cluster.hub');
const holder = globalThis as { [KEY]?: HubClient | undefined };

let lastNumber = 0;

/** What is made from now on belongs to the worker that has this connection. */
export function enterWorker(hub: HubClient): void {
  holder[KEY] = hub;
}

export function forgetHub(): void {
  holder[KEY] = undefined;
}

/** Resolves once all microtasks have run. */
export const idle = () => new Promise((resolve) => setImmediate(resolve));

/** The hub's end of a connection, without a worker: `told` has what the hub says. */
export function fakePeer(slot = 0) {
  const told: FromHub[] = [];
  const send = (header: FromHub) => void told.push(header);
  const peer: Peer = { number: (lastNumber += 1), slot, leaving: false, unsentBytes: 0, send };
  return { peer, told };
}

/** The connection of a worker to a hub, without sockets: its frames are delivered in microtasks. */
export function connect(core: HubCore, slot: number) {
  const state = { unsentBytes: 0, holding: false, writable: true };
  /** All that the worker sends, also while it is not `writable`. */
  const sent: ToHub[] = [];
  /** Messages from the hub that are held back while `holding` is set. */
  const held: (() => void)[] = [];
  const frames = { failed: (thrown: unknown): void => void thrown };
  /** Messages that never reach the hub, by `op`. */
  const lost = new Set<string>();
  let line!: LineEvents;
  let peer!: Peer;
  /** Messages that the hub has not read yet, by `op`. */
  const unread = new Map<string, (() => void)[]>();
  const hub = new HubClient((events) => {
    line = events;
    peer = {
      number: (lastNumber += 1),
      slot,
      leaving: false,
      get unsentBytes() {
        return state.unsentBytes;
      },
      send: (header: FromHub, body = NO_BODY) => {
        const own = Buffer.from(body); // the hub uses its memory again
        const deliver = (): void => {
          try {
            events.frame(header, own);
          } catch (error) {
            frames.failed(error);
          }
        };
        if (state.holding) held.push(deliver);
        else queueMicrotask(deliver);
      },
    };
    queueMicrotask(() => events.opened('a'));
    return (header, body = NO_BODY) => {
      sent.push(header);
      if (!state.writable) return false;
      const arrive = (): void => core.receive(peer, header as WorkerMessage, body);
      const waiting = unread.get(header.op);
      if (waiting !== undefined) waiting.push(arrive);
      else if (!lost.has(header.op)) arrive();
      return true;
    };
  });
  return {
    core,
    hub,
    line,
    state,
    sent,
    frames,
    lost,
    /** Delays messages to the hub, until the function that this returns is called. */
    delayed: (op: string) => {
      const waiting: (() => void)[] = [];
      unread.set(op, waiting);
      return () => {
        unread.delete(op);
        for (const arrive of waiting) arrive();
      };
    },
    /** Its process ends. */
    leave: () => core.leave(peer),
    /** Delivers the messages from the hub that were held back. */
    deliver: () => {
      state.holding = false;
      for (const each of held.splice(0)) each();
    },
  };
}

/** The provider as an app with that emitter has it, after `onModuleInit()`. */
export async function eventsOf(emitter: EventEmitter2): Promise<ClusterEvents> {
  const watcher = { waitUntilReady: () => Promise.resolve() };
  const provided = new Map<unknown, unknown>([
    [EventEmitter2, emitter],
    [EventEmitterReadinessWatcher, watcher],
  ]);
  const events = new ClusterEvents(provided as unknown as ModuleRef);
  await events.onModuleInit();
  return events;
}

/** A worker of that slot whose app has started. Call `enterWorker()` before its events are used. */
export async function startWorker(core: HubCore, slot: number, emitter = new EventEmitter2()) {
  const connection = connect(core, slot);
  enterWorker(connection.hub);
  const events = await eventsOf(emitter);
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
