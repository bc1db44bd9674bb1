import { machineNow } from '../machine.js';
import type { ToHub } from '../wire/protocol.js';
import { answerLock, CacheService, nameIn } from './cache/cache-service.js';
import { Channels } from './services/channels.js';
import { Counters } from './services/counters.js';
import { EventRouter } from './services/event-router.js';
import { Locks } from './services/locks.js';
import { type Peer, refuse } from './services/peer.js';

/** Any message that a worker sends after its `hello`. */
export type WorkerMessage = Exclude<ToHub, { op: 'hello' }>;

/** The state that workers share. It needs no thread, so a process without a primary can use it. */
export class HubCore {
  readonly #locks: Locks<Peer>;
  readonly #caches: CacheService;
  readonly #counters = new Counters();
  readonly #events = new EventRouter();
  readonly #channels = new Channels();

  /**
   * @param closedUntil until this time, locks are granted only to workers that held them before.
   * @param clock the clock of the machine, which workers read as well.
   * @param maxCacheBytes the maximum size of all caches together.
   */
  constructor(
    closedUntil?: number,
    private readonly clock: () => number = machineNow,
    maxCacheBytes?: number,
  ) {
    // The previous hub granted less than one lock a microsecond, so all numbers of its grants are lower.
    const lastGrant = Math.floor(this.clock() * 1_000);
    this.#locks = new Locks(closedUntil, undefined, lastGrant);
    // Leases and locks have different numbers, so `unlock` can name either.
    this.#caches = new CacheService(2 ** 52 + lastGrant, maxCacheBytes);
  }

  /** @param body a view of memory that is reused. A service copies a body that it keeps. */
  receive(from: Peer, message: WorkerMessage, body: Buffer): void {
    const now = this.clock();
    switch (message.op) {
      case 'lock': {
        const { id, waitMs, reclaim, limit } = message;
        const name = nameIn(limit?.name ?? '', message.name);
        const request = { peer: from, id, ...limit };
        const answers =
          reclaim === true
            ? this.#locks.reclaim(name, request, now)
            : this.#locks.acquire(name, request, waitMs, now);
        return answers.forEach(answerLock);
      }
      case 'unlock':
        this.#locks.release(message.grant, from, now).forEach(answerLock);
        return this.#caches.release(message.grant, from, now);
      case 'cancel':
        this.#events.cancel(from, message.id);
        this.#locks.cancel(message.id, from);
        return this.#caches.cancel(message.id, from);
      case 'count': {
        const at = Math.floor(Math.min(message.at ?? now, now));
        return from.send({ t: 'counted', id: message.id, ...this.#counters.count(message, at) });
      }
      case 'subscribe':
        if (message.leaving === true) this.#events.prepareLeave(from);
        else this.#events.subscribe(from);
        return from.send({ t: 'done', id: message.id, changed: 1, evicted: 0 });
      case 'unsubscribe':
        this.#events.unsubscribe(from);
        return from.send({ t: 'done', id: message.id, changed: 1, evicted: 0 });
      case 'publish':
        return this.#events.publish(from, message, body, now);
      case 'reply':
        return this.#events.reply(from, message, body);
      case 'join':
        this.#channels.join(from, message);
        return from.send({ t: 'done', id: message.id, changed: 1, evicted: 0 });
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
        return this.#caches.receive(from, message, body, now);
    }
  }

  /** Called when the worker has read some of its messages. */
  drained(peer: Peer): void {
    this.#events.drained(peer, this.clock());
  }

  /** Called when the worker is gone. Its locks are granted to other workers. */
  leave(peer: Peer): void {
    const now = this.clock();
    for (const { by, id } of this.#events.leave(peer)) refuse(by, { id }, 'its worker is gone');
    this.#channels.leave(peer);
    this.#locks.leave(peer, now).forEach(answerLock);
    this.#caches.leave(peer, now);
  }

  /** Ends the time in which workers can reclaim their locks. */
  open(): void {
    this.#locks.open(this.clock()).forEach(answerLock);
  }

  /** Removes all expired state. To be called each second. */
  sweep(): void {
    const now = this.clock();
    this.#counters.sweep(Math.floor(now));
    this.#caches.sweep(now);
    this.#events.sweep(now);
  }
}
