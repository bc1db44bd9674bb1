import type { Peer, ToHub } from '../wire/protocol.js';
import { Caches, nameIn } from './caches.js';
import { Channels } from './channels.js';
import { Counters } from './counters.js';
import { EventRouter } from './event-router.js';
import { answerLock, Locks } from './locks.js';

/** How often to call `sweep()`, in ms. lru-cache checks every entry, which takes 50 ms for 250,000 entries. */
export const SWEEP_MS = 60_000;

/** Any message that a worker sends after its `hello`. */
export type WorkerMessage = Exclude<ToHub, { op: 'hello' }>;

/** The state that workers share. It needs no thread, so a process without a primary can use it. */
export class HubCore {
  readonly #locks: Locks;
  readonly #caches: Caches;
  readonly #counters = new Counters();
  readonly #events = new EventRouter();
  readonly #channels = new Channels();

  /** @param reclaimMs how long locks are granted only to workers that held them before. */
  constructor(reclaimMs = 0) {
    // From a clock that all threads of the machine share. The previous hub granted less than one lock
    // per microsecond, so all its grants have lower numbers.
    const lastGrant = Number(process.hrtime.bigint() / 1_000n);
    this.#locks = new Locks(answerLock, lastGrant, performance.now() + reclaimMs);
    // Leases and locks have different numbers, so `unlock` can name either.
    this.#caches = new Caches(2 ** 52 + lastGrant);
  }

  /** @param body a view of reused memory. A service must copy a body that it keeps. */
  receive(from: Peer, message: WorkerMessage, body: Buffer): void {
    const done = (id: number): void => from.send({ t: 'done', id, changed: 1 });
    switch (message.op) {
      case 'lock': {
        const { id, waitMs, reclaim, limit } = message;
        const name = nameIn(limit?.name ?? '', message.name);
        const request = { peer: from, id, ...limit };
        if (reclaim === true) return this.#locks.reclaim(name, request);
        return this.#locks.acquire(name, request, waitMs > 0);
      }
      case 'unlock':
        this.#locks.release(message.grant, from);
        return this.#caches.release(message.grant, from);
      case 'cancel':
        this.#events.cancel(from, message.id);
        this.#locks.cancel(from, message.id);
        return this.#caches.cancel(from, message.id);
      case 'count': {
        const counted = this.#counters.count(message, Math.floor(performance.now()));
        return from.send({ t: 'counted', id: message.id, ...counted });
      }
      case 'subscribe':
        from.leaving ||= message.leaving === true;
        if (!from.leaving) this.#events.subscribe(from);
        return done(message.id);
      case 'unsubscribe':
        this.#events.unsubscribe(from);
        return done(message.id);
      case 'publish':
        return this.#events.publish(from, message, body);
      case 'reply':
        return this.#events.reply(from, message, body);
      case 'join':
        this.#channels.join(from, message);
        return done(message.id);
      case 'part':
        return this.#channels.part(from, message);
      case 'say':
        return this.#channels.say(from, message, body);
      case 'get':
      case 'set':
      case 'fill':
      case 'delete':
      case 'clear':
      case 'keys':
      case 'lease':
      case 'stats':
        return this.#caches.receive(from, message, body);
    }
  }

  /** Called when a worker has disconnected. Ends its subscriptions, memberships, locks, leases and requests. */
  leave(peer: Peer): void {
    this.#events.leave(peer);
    this.#channels.leave(peer);
    this.#locks.leave(peer);
    this.#caches.leave(peer);
  }

  /** Ends the time in which workers can reclaim their locks. */
  open(): void {
    this.#locks.open();
  }

  /** Removes expired state to free memory. Expired state is never read. */
  sweep(): void {
    this.#counters.sweep();
    this.#caches.sweep();
  }
}
