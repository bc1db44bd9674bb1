import type { FromHub, ToHub } from '../protocol.js';

/** One that events are sent to. */
interface Receiver {
  readonly slot: number;
  readonly congested: boolean;
  send(header: FromHub, body?: Buffer): void;
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

  add(receiver: P): void {
    this.#numberOf(receiver);
    this.#receivers.add(receiver);
  }

  /** It may still ask, and has its answers. */
  remove(receiver: P): void {
    this.#receivers.delete(receiver);
  }

  /** It is gone. */
  leave(peer: P): void {
    this.#receivers.delete(peer);
    this.#numbers.delete(peer);
  }

  /** @returns how many it was sent to, and how many missed it. */
  publish(
    from: P,
    { id, name, form, to, request }: Publish,
    body: Buffer,
  ): { readonly sent: number; readonly missed: number } {
    const event = { t: 'event', name, form, from: this.#numberOf(from) } as const;
    const header = request === true ? { ...event, request: id } : event;
    let sent = 0;
    let missed = 0;
    for (const receiver of this.#chosen(from, to)) {
      if (receiver.congested) {
        missed += 1;
        continue;
      }
      receiver.send(header, body);
      sent += 1;
    }
    return { sent, missed };
  }

  reply({ to, request, form, failed }: Reply, body: Buffer): void {
    for (const [peer, number] of this.#numbers) {
      if (number === to) return peer.send({ t: 'reply', id: request, form, failed }, body);
    }
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
}
