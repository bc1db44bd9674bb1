import type { RequestOf } from '../../wire/protocol.js';
import type { Peer } from './peer.js';
import { SlowReaders } from './slow-readers.js';

/** A request that has no reply yet. */
interface OpenRequest {
  readonly by: Peer;
  readonly id: number;
}

/**
 * Sends events to subscribed workers, at most once and in the order of each sender. The answer to a
 * sender waits until the receivers keep up. A receiver that does not read misses events.
 */
export class EventRouter {
  /** The subscribed workers. The first worker is next in turn for an event to `one` worker. */
  readonly #receivers = new Set<Peer>();
  /** Workers that are about to exit. Events to `one` worker go to other workers if possible. */
  readonly #leaving = new Set<Peer>();
  readonly #readers = new SlowReaders();
  /** The number of each peer. A reply names the peer that asked by its number. Newer peers have higher numbers. */
  readonly #numbers = new Map<Peer, number>();
  #lastNumber = 0;
  /** The open requests of each receiver, by {@link keyOf}. */
  readonly #requests = new Map<Peer, Map<string, OpenRequest>>();

  subscribe(receiver: Peer): void {
    this.#numberOf(receiver);
    this.#receivers.add(receiver);
  }

  /** From now on, the receiver gets an event to `one` worker only if no other worker can take it. */
  prepareLeave(receiver: Peer): void {
    this.#leaving.add(receiver);
  }

  /** Ends the peer's subscription. The peer can still send requests, and gets their replies. */
  unsubscribe(receiver: Peer): void {
    this.#receivers.delete(receiver);
    this.#leaving.delete(receiver);
  }

  /** Forgets a peer that is gone. @returns the requests that it has not answered. */
  leave(peer: Peer): readonly OpenRequest[] {
    this.unsubscribe(peer);
    this.#readers.release(peer);
    this.#numbers.delete(peer);
    const unanswered = [...(this.#requests.get(peer)?.values() ?? [])];
    this.#requests.delete(peer);
    for (const requests of this.#requests.values()) {
      for (const [key, { by }] of requests) if (by === peer) requests.delete(key);
    }
    return unanswered.filter(({ by }) => by !== peer);
  }

  /** Forgets a request whose sender no longer waits for the reply. */
  cancel(by: Peer, id: number): void {
    const key = keyOf(this.#numbers.get(by), id);
    for (const requests of this.#requests.values()) requests.delete(key);
  }

  /** Sends an event. A request that reached a receiver is answered by the receiver's reply. */
  publish(
    from: Peer,
    { id, name, to, request }: RequestOf<'publish'>,
    body: Buffer,
    now: number,
  ): void {
    const number = this.#numberOf(from);
    const event = { t: 'event', name, from: number } as const;
    const header = request === true ? { ...event, request: id } : event;
    const chosen = this.#chosen(from, to);
    const sentTo = chosen.filter((receiver) => this.#readers.accepts(receiver));
    for (const receiver of sentTo) {
      receiver.send(header, body);
      if (request === true) this.#requestsOf(receiver).set(keyOf(number, id), { by: from, id });
    }
    const changed = sentTo.length;
    if (request === true && changed > 0) return;
    const done = { t: 'done', id, changed, evicted: chosen.length - changed } as const;
    this.#readers.answerAfter(sentTo, () => from.send(done), now);
  }

  /** Called when the receiver has read some of its events. */
  drained(receiver: Peer, now: number): void {
    this.#readers.drained(receiver, now);
  }

  sweep(now: number): void {
    this.#readers.sweep(now);
  }

  /** Passes a reply on to the peer that asked. A reply to no open request is dropped. */
  reply(from: Peer, { to, request, failed }: RequestOf<'reply'>, body: Buffer): void {
    const requests = this.#requests.get(from);
    const key = keyOf(to, request);
    const { by } = requests?.get(key) ?? {};
    if (by === undefined) return;
    requests!.delete(key);
    by.send({ t: 'reply', id: request, failed }, body);
  }

  #chosen(from: Peer, to: RequestOf<'publish'>['to']): Peer[] {
    const all = [...this.#receivers];
    if (to === 'all') return all;
    if (to === 'others') return all.filter((each) => each !== from);
    if (typeof to === 'number') {
      // During a replacement a slot has two workers. The newer worker gets the event.
      const ofSlot = all.filter(({ slot }) => slot === to);
      return ofSlot.sort((a, b) => this.#numberOf(a) - this.#numberOf(b)).slice(-1);
    }
    const able = all.filter((each) => this.#readers.accepts(each));
    const stays = (each: Peer) => !this.#leaving.has(each);
    const next =
      able.find((each) => stays(each) && !each.congested) ?? able.find(stays) ?? able[0] ?? all[0];
    if (next === undefined) return [];
    // Moves the receiver to the end of the order.
    this.#receivers.delete(next);
    this.#receivers.add(next);
    return [next];
  }

  #numberOf(peer: Peer): number {
    let number = this.#numbers.get(peer);
    if (number === undefined) this.#numbers.set(peer, (number = this.#lastNumber += 1));
    return number;
  }

  #requestsOf(peer: Peer): Map<string, OpenRequest> {
    let requests = this.#requests.get(peer);
    if (requests === undefined) this.#requests.set(peer, (requests = new Map()));
    return requests;
  }
}

function keyOf(number: number | undefined, id: number): string {
  return `${number} ${id}`;
}
