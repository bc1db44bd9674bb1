import type { FromHub, ToHub } from '../protocol.js';

/** One that events are sent to. */
interface Receiver {
  readonly slot: number;
  readonly congested: boolean;
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
 * Carries events to those who want them: at most once, in the order of each sender. A receiver that
 * does not read misses them.
 */
export class Post<P extends Receiver> {
  /** In the order of their turns: `one` goes round. */
  readonly #receivers = new Set<P>();
  /** By which a reply finds the one who asked, a receiver or not. That of a newer one is higher. */
  readonly #numbers = new Map<P, number>();
  #lastNumber = 0;
  /** What each was asked, by the number of the one who asks and that of the request. */
  readonly #asked = new Map<P, Map<string, Asked<P>>>();

  add(receiver: P): void {
    this.#numberOf(receiver);
    this.#receivers.add(receiver);
  }

  /** It may still ask, and has its answers. */
  remove(receiver: P): void {
    this.#receivers.delete(receiver);
  }

  /** It is gone. @returns what it was asked and has not answered. */
  leave(peer: P): readonly Asked<P>[] {
    this.#receivers.delete(peer);
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

  /** @returns how many it was sent to, and how many missed it. */
  publish(
    from: P,
    { id, name, form, to, request }: Publish,
    body: Buffer,
  ): { readonly sent: number; readonly missed: number } {
    const number = this.#numberOf(from);
    const event = { t: 'event', name, form, from: number } as const;
    const header = request === true ? { ...event, request: id } : event;
    let sent = 0;
    let missed = 0;
    for (const receiver of this.#chosen(from, to)) {
      if (receiver.congested) {
        missed += 1;
        continue;
      }
      receiver.send(header, body);
      if (request === true) this.#askedOf(receiver).set(keyOf(number, id), { by: from, id });
      sent += 1;
    }
    return { sent, missed };
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
    const free = all.find(({ congested }) => !congested);
    if (free === undefined) return [];
    // It is the last in turn from now on.
    this.#receivers.delete(free);
    this.#receivers.add(free);
    return [free];
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
