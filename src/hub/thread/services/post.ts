import type { FromHub, ToHub } from '../../wire/protocol.js';
import { SlowReaders } from './slow-readers.js';

/** One that events are sent to. */
interface Receiver {
  readonly slot: number;
  readonly congested: boolean;
  readonly unsentBytes: number;
  send(header: FromHub, body?: Buffer): void;
}

/** A request that has no answer yet. */
interface Asked<P> {
  readonly by: P;
  readonly id: number;
}

type Publish = Extract<ToHub, { op: 'publish' }>;
type Reply = Extract<ToHub, { op: 'reply' }>;

/**
 * Carries events to those who want them: at most once, in the order of each sender. The answer to a
 * sender comes when its receivers keep up. A receiver that does not read misses events.
 */
export class Post<P extends Receiver> {
  /** In the order of their turns: `one` goes round. */
  readonly #receivers = new Set<P>();
  /** They are about to end: others come first. */
  readonly #leaving = new Set<P>();
  readonly #readers = new SlowReaders<P>();
  /** By which a reply finds the one who asked, a receiver or not. That of a newer one is higher. */
  readonly #numbers = new Map<P, number>();
  #lastNumber = 0;
  /** What each was asked, by the number of the one who asks and that of the request. */
  readonly #asked = new Map<P, Map<string, Asked<P>>>();

  add(receiver: P): void {
    this.#numberOf(receiver);
    this.#receivers.add(receiver);
  }

  /** What others can do as well is no longer sent to it. */
  stepAside(receiver: P): void {
    this.#leaving.add(receiver);
  }

  /** It may still ask, and has its answers. */
  remove(receiver: P): void {
    this.#receivers.delete(receiver);
    this.#leaving.delete(receiver);
  }

  /** It is gone. @returns what it was asked and has not answered. */
  leave(peer: P): readonly Asked<P>[] {
    this.remove(peer);
    this.#readers.release(peer);
    this.#numbers.delete(peer);
    const unanswered = [...(this.#asked.get(peer)?.values() ?? [])];
    this.#asked.delete(peer);
    for (const asked of this.#asked.values()) {
      for (const [key, { by }] of asked) if (by === peer) asked.delete(key);
    }
    return unanswered.filter(({ by }) => by !== peer);
  }

  /** Nobody waits for that answer any more. */
  cancel(by: P, id: number): void {
    const key = keyOf(this.#numbers.get(by), id);
    for (const asked of this.#asked.values()) asked.delete(key);
  }

  /** A request that was sent is answered by the reply to it. */
  publish(from: P, { id, name, form, to, request }: Publish, body: Buffer, now: number): void {
    const number = this.#numberOf(from);
    const event = { t: 'event', name, form, from: number } as const;
    const header = request === true ? { ...event, request: id } : event;
    const chosen = this.#chosen(from, to);
    const sentTo = chosen.filter((receiver) => this.#readers.accepts(receiver));
    for (const receiver of sentTo) {
      receiver.send(header, body);
      if (request === true) this.#askedOf(receiver).set(keyOf(number, id), { by: from, id });
    }
    const changed = sentTo.length;
    if (request === true && changed > 0) return;
    const done = { t: 'done', id, changed, evicted: chosen.length - changed } as const;
    this.#readers.answerAfter(sentTo, () => from.send(done), now);
  }

  /** It has read some of what it was sent. */
  drained(receiver: P): void {
    if (!receiver.congested) this.#readers.release(receiver);
  }

  sweep(now: number): void {
    this.#readers.sweep(now);
  }

  /** Passes the answer on to the one who asked, if it is one. */
  reply(from: P, { to, request, form, failed }: Reply, body: Buffer): void {
    const asked = this.#asked.get(from);
    const key = keyOf(to, request);
    const { by } = asked?.get(key) ?? {};
    if (by === undefined) return;
    asked!.delete(key);
    by.send({ t: 'reply', id: request, form, failed }, body);
  }

  #chosen(from: P, to: Publish['to']): P[] {
    const all = [...this.#receivers];
    if (to === 'all') return all;
    if (to === 'others') return all.filter((each) => each !== from);
    if (typeof to === 'number') {
      // There are two while one takes over from the other.
      const ofSlot = all.filter(({ slot }) => slot === to);
      return ofSlot.sort((a, b) => this.#numberOf(a) - this.#numberOf(b)).slice(-1);
    }
    const able = all.filter((each) => this.#readers.accepts(each));
    const stays = (each: P) => !this.#leaving.has(each);
    const next =
      able.find((each) => stays(each) && !each.congested) ?? able.find(stays) ?? able[0] ?? all[0];
    if (next === undefined) return [];
    // It is the last in turn from now on.
    this.#receivers.delete(next);
    this.#receivers.add(next);
    return [next];
  }

  #numberOf(peer: P): number {
    let number = this.#numbers.get(peer);
    if (number === undefined) this.#numbers.set(peer, (number = this.#lastNumber += 1));
    return number;
  }

  #askedOf(peer: P): Map<string, Asked<P>> {
    let asked = this.#asked.get(peer);
    if (asked === undefined) this.#asked.set(peer, (asked = new Map()));
    return asked;
  }
}

function keyOf(number: number | undefined, id: number): string {
  return `${number} ${id}`;
}
