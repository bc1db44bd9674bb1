import { machineMs } from '../wire/machine-clock.js';
import type { ToHub } from '../wire/protocol.js';
import { answerLock, CacheService } from './cache/cache-service.js';
import { Channels } from './services/channels.js';
import { Counters } from './services/counters.js';
import { EventRouter } from './services/event-router.js';
import { Locks } from './services/locks.js';
import { type Peer, refuse } from './services/peer.js';

/** Everything that a worker sends after its `hello`. */
export type WorkerMessage = Exclude<ToHub, { op: 'hello' }>;

/** The state that workers share. It knows neither sockets nor threads: a process without a primary runs it, too. */
export class HubCore {
  readonly #locks: Locks<Peer>;
  readonly #caches: CacheService;
  readonly #counters = new Counters();
  readonly #events = new EventRouter();
  readonly #channels = new Channels();

  /**
   * @param closedUntil until then locks go only to workers that held them before.
   * @param clock the clock of the machine, which workers read as well.
   * @param maxCacheBytes the limit for all caches together.
   */
  constructor(
    closedUntil?: number,
    private readonly clock: () => number = machineMs,
    maxCacheBytes?: number,
  ) {
    // The hub before this one gave less than one grant a microsecond: its numbers are lower.
    const lastGrant = Math.floor(this.clock() * 1_000);
    this.#locks = new Locks(closedUntil, undefined, lastGrant);
    // A lease never has the number of a lock, so `unlock` can name either.
    this.#caches = new CacheService(2 ** 52 + lastGrant, maxCacheBytes);
  }

  /** @param body a view: it is copied if it is kept. */
  receive(from: Peer, message: WorkerMessage, body: Buffer): void {
    const now = this.clock();
    switch (message.op) {
      case 'lock': {
        const { name, id, waitMs, reclaim } = message;
        const request = { peer: from, id };
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
        return this.#channels.say(from, message, body, now);
      case 'missed':
        return this.#channels.missed(from, message);
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

  /** The worker has read some of what it was sent. */
  drained(peer: Peer): void {
    this.#events.drained(peer, this.clock());
  }

  /** The worker is gone: its locks go to others. */
  leave(peer: Peer): void {
    const now = this.clock();
    for (const { by, id } of this.#events.leave(peer)) refuse(by, { id }, 'its worker is gone');
    this.#channels.leave(peer);
    this.#locks.leave(peer, now).forEach(answerLock);
    this.#caches.leave(peer, now);
  }

  /** The time in which workers could reclaim their locks is over. */
  open(): void {
    this.#locks.open(this.clock()).forEach(answerLock);
  }

  /** To be called each second. Removes what has expired. */
  sweep(): void {
    const now = this.clock();
    this.#counters.sweep(Math.floor(now));
    this.#caches.sweep(now);
    this.#channels.sweep(now);
    this.#events.sweep(now);
  }
}
