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
  /** In the order in which they came; `one` goes round. */
  readonly #receivers = new Map<P, number>();
  #lastNumber = 0;

  add(receiver: P): void {
    if (!this.#receivers.has(receiver)) this.#receivers.set(receiver, (this.#lastNumber += 1));
  }

  remove(receiver: P): void {
    this.#receivers.delete(receiver);
  }

  /** @returns how many it was sent to, and how many missed it. */
  publish(
    from: P,
    { id, name, form, to, request }: Publish,
    body: Buffer,
  ): { readonly sent: number; readonly missed: number } {
    const sender = this.#receivers.get(from) ?? 0;
    const event = { t: 'event', name, form, from: sender } as const;
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
    for (const [receiver, number] of this.#receivers) {
      if (number === to) return receiver.send({ t: 'reply', id: request, form, failed }, body);
    }
  }

  #chosen(from: P, to: Publish['to']): P[] {
    const all = [...this.#receivers.keys()];
    if (to === 'all') return all;
    if (to === 'others') return all.filter((each) => each !== from);
    if (typeof to === 'number') return all.filter(({ slot }) => slot === to).slice(-1);
    const free = all.find(({ congested }) => !congested);
    if (free === undefined) return [];
    // It is the last in turn from now on.
    const number = this.#receivers.get(free)!;
    this.#receivers.delete(free);
    this.#receivers.set(free, number);
    return [free];
  }
}
